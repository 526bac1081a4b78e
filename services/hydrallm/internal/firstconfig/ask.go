package firstconfig

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"hydrallm/services/hydrallm/internal/phrase"
)

// Ask asks for what a plan leaves open. The end of the input means that the rest is as proposed.
func (p *Plan) Ask(in io.Reader, out io.Writer) {
	a := asker{in: bufio.NewScanner(in), out: out}
	if len(p.Providers) > 0 {
		fmt.Fprintln(out, "These can be used:")
		for i, f := range p.Providers {
			fmt.Fprintf(out, "  %d. %s\n", i+1, f)
		}
		p.Providers = a.choose("Which of them? Numbers with commas", p.Providers)
	}
	models := p.Models()
	if len(models) > 0 {
		fmt.Fprintln(out, "Models of this machine: "+strings.Join(models, ", "))
	}
	p.Default = a.text("Default model (auto: the gateway chooses)", p.Default, usable)
	p.Alias = a.text("A name for it that clients can use", p.Alias, func(s string) bool { return usable(s) && !strings.Contains(s, "/") && s != p.Default })
	p.AdminKey = a.yes("Make an admin key, which opens the web interface", p.AdminKey)
	p.ClientKeys = a.yes("Ask clients for a key", p.ClientKeys)
	port := a.text("Port", strconv.Itoa(p.Port), func(s string) bool {
		n, err := strconv.Atoi(s)
		return err == nil && n > 0 && n < 1<<16
	})
	p.Port, _ = strconv.Atoi(port) // it was checked
}

// String tells where a provider was found.
func (f Found) String() string {
	switch {
	case len(f.Variables) > 0:
		return fmt.Sprintf("%s, with the key in %s", f.ID, strings.Join(f.Variables, ", "))
	case len(f.Models) == 1:
		return f.ID + " on this machine, with one model"
	default:
		return fmt.Sprintf("%s on this machine, with %s", f.ID, phrase.Count(len(f.Models), "model"))
	}
}

type asker struct {
	in  *bufio.Scanner
	out io.Writer
}

// tries is how often a question is put before what was proposed counts.
const tries = 3

// text asks until the answer is one that fits.
func (a *asker) text(question, proposed string, fits func(string) bool) string {
	for range tries {
		fmt.Fprintf(a.out, "%s [%s]: ", question, proposed)
		if !a.in.Scan() {
			fmt.Fprintln(a.out)
			return proposed
		}
		switch answer := strings.TrimSpace(a.in.Text()); {
		case answer == "":
			return proposed
		case fits(answer):
			return answer
		}
		fmt.Fprintln(a.out, "That does not fit.")
	}
	return proposed
}

func (a *asker) yes(question string, proposed bool) bool {
	words := map[string]bool{"y": true, "yes": true, "n": false, "no": false}
	shown := map[bool]string{true: "y", false: "n"}[proposed]
	answer := a.text(question+"? y or n", shown, func(s string) bool { _, ok := words[strings.ToLower(s)]; return ok })
	return words[strings.ToLower(answer)]
}

// choose lets somebody take some of a list, by their numbers.
func (a *asker) choose(question string, all []Found) []Found {
	var taken []Found
	a.text(question, "all", func(s string) bool {
		taken = nil
		if strings.EqualFold(s, "all") {
			return true
		}
		for word := range strings.SplitSeq(s, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(word))
			if err != nil || n < 1 || n > len(all) {
				taken = nil
				return false
			}
			if !slices.ContainsFunc(taken, func(f Found) bool { return f.ID == all[n-1].ID }) {
				taken = append(taken, all[n-1])
			}
		}
		return true
	})
	if taken == nil {
		return all
	}
	return taken
}
