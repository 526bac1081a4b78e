package movein

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"hydrallm/shared/config"
)

// Variable is an environment variable that the result names.
type Variable struct {
	Name    string
	Literal bool   // the source had its value
	From    string // what it is for: a path of the source, or how to get it

	value string // as in the source, if Literal
	sham  string // what stands for it while the result is checked
}

// variables are those of one result.
type variables struct {
	all    []*Variable
	byName map[string]*Variable
	held   map[held]*Variable // literal ones
	source map[string]bool    // names that the source uses, for whatever
}

// held is a value that the source has in plain, for one place: it may be set for that, where the variable is set already, and go nowhere else.
type held struct{ wanted, value string }

func newVariables() *variables {
	return &variables{byName: map[string]*Variable{}, held: map[held]*Variable{}, source: map[string]bool{}}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// named gives the reference to a variable that is set elsewhere.
func (vs *variables) named(name, from string) string {
	if vs.byName[name] == nil {
		vs.add(&Variable{Name: name, From: from})
	}
	return "${" + name + "}"
}

// literal gives the reference to a variable for a value that the source has in plain. The same value has the same
// variable where the same name is wanted.
func (vs *variables) literal(name, value, from string) string {
	if config.LikeCredential(name) {
		name = "KEY"
	}
	base, name := shout(name), shout(name)
	if have := vs.held[held{base, value}]; have != nil {
		return "${" + have.Name + "}"
	}
	for i := 2; vs.byName[name] != nil || vs.source[name]; i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	v := &Variable{Name: name, Literal: true, From: from, value: value}
	vs.held[held{base, value}] = v
	vs.add(v)
	return "${" + name + "}"
}

// given is the value that the source itself gives to a variable.
func (vs *variables) given(name, value string) {
	v := vs.byName[name]
	v.Literal, v.value = true, value
	if at := (held{name, value}); vs.held[at] == nil {
		vs.held[at] = v
	}
}

func (vs *variables) add(v *Variable) {
	v.sham = "stand-in-" + strings.ToLower(v.Name)
	vs.byName[v.Name] = v
	vs.all = append(vs.all, v)
}

// keep forgets the variables that a text does not name: what they were for has been refused.
func (vs *variables) keep(result string) {
	vs.all = slices.DeleteFunc(vs.all, func(v *Variable) bool {
		return !strings.Contains(result, "${"+v.Name+"}") && !strings.Contains(result, "${"+v.Name+":-")
	})
}

// beginsAddresses says that a variable holds the beginning of an address, so that what stands for it while the result is checked has to be one.
func (vs *variables) beginsAddresses(name string) {
	if v := vs.byName[name]; v != nil {
		v.sham = "https://" + strings.ReplaceAll(strings.ToLower(name), "_", "-") + ".invalid"
	}
}

// lookup gives what stands for the variables while the result is checked.
func (vs *variables) lookup(name string) (string, bool) {
	v := vs.byName[name]
	if v == nil {
		return "", false
	}
	return v.sham, true
}

var notInName = regexp.MustCompile(`[^A-Z0-9]+`)

// shout makes the name of a variable from words.
func shout(s string) string {
	s = strings.Trim(notInName.ReplaceAllString(strings.ToUpper(s), "_"), "_")
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		s = "KEY_" + s
	}
	return s[:min(len(s), 100)]
}

var plainValue = regexp.MustCompile(`^[A-Za-z0-9_./:+=@,~-]+$`)

// EnvFile gives a file of the variables whose values the source has in plain, as NAME=value, or nil without any. It holds secrets.
func (r *Result) EnvFile() []byte {
	var b strings.Builder
	for _, v := range r.vars.all {
		switch {
		case !v.Literal:
		case plainValue.MatchString(v.value):
			fmt.Fprintf(&b, "%s=%s\n", v.Name, v.value)
		case !strings.ContainsAny(v.value, "'\\\n\r"):
			fmt.Fprintf(&b, "%s='%s'\n", v.Name, v.value)
		default:
			if line, err := godotenv.Marshal(map[string]string{v.Name: v.value}); err == nil {
				b.WriteString(line + "\n")
			}
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return []byte(b.String())
}
