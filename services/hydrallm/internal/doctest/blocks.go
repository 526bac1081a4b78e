package doctest

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// How says how a block is tested, where its language alone does not. It is written in a comment, in the line before the block: <!-- how: value -->.
type How string

// What a page may say of a block.
const (
	ByLanguage How = ""         // a block without a comment: see Checked and Run
	Untested   How = "untested" // value: why nothing here can try it
	Tested     How = "tested"   // value: the Go test that tries what the block shows
	File       How = "file"     // value: the name under which the commands of the page find it
	Server     How = "server"   // the last command is a gateway, which runs until the next one or the end of the page; value: the command that is run before the block for it
)

// Languages of blocks that need no comment.
const (
	Text       = "text" // what a program prints, a diagram: no test
	YAML       = "yaml" // a configuration of the gateway, which it has to take
	JSON       = "json" // has to be sound
	TOML       = "toml" // a file of another program: has to be sound
	Shell      = "sh"   // is run, in a directory of the page, with a gateway
	Python     = "python"
	JavaScript = "js" // these are run with the clients that are installed for it
)

// Block is a fenced block of code of a page.
type Block struct {
	File  string // of the page, from the root of the repository
	Line  int    // of the fence
	Lang  string
	Text  string // with the last line's end
	How   How
	Value string
}

// Place names the block in messages.
func (b *Block) Place() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

// Pages are README.md and all documents below docs, sorted, from the root of the repository.
func Pages(root fs.FS) ([]string, error) {
	pages := []string{"README.md"}
	err := fs.WalkDir(root, "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path.Ext(name) == ".md" {
			pages = append(pages, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing the documents: %w", err)
	}
	slices.Sort(pages)
	return pages, nil
}

// Read gives the blocks of a page. The error has all that is wrong with how they are written.
func Read(root fs.FS, page string) ([]Block, error) {
	text, err := fs.ReadFile(root, page)
	if err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	return Parse(page, string(text))
}

var (
	fence   = regexp.MustCompile("^( *)```(.*)$")
	comment = regexp.MustCompile(`^ *<!-- (untested|tested|file|server)(?:: (.+?))? -->$`)
)

// Parse is Read for the text of a page.
func Parse(page, text string) ([]Block, error) {
	var (
		blocks  []Block
		faults  []error
		open    *Block
		indent  string
		said    []string // what the comment in the line before says, as comment finds it
		saidAt  int
		wrongAt = func(line int, why string) { faults = append(faults, fmt.Errorf("%s:%d: %s", page, line, why)) }
	)
	for i, line := range strings.Split(text, "\n") {
		number := i + 1
		found := fence.FindStringSubmatch(line)
		switch {
		case open != nil && found != nil && strings.TrimSpace(found[2]) == "":
			blocks = append(blocks, *open)
			if why := open.fault(); why != "" {
				wrongAt(open.Line, why)
			}
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent) + "\n"
		case found != nil:
			open, indent = &Block{File: page, Line: number, Lang: strings.TrimSpace(found[2])}, found[1]
			if said != nil && saidAt == number-1 {
				open.How, open.Value = How(said[1]), said[2]
				said = nil
			}
		default:
			if said != nil {
				wrongAt(saidAt, "the comment belongs to the line before a block")
			}
			said, saidAt = comment.FindStringSubmatch(line), number
		}
	}
	if open != nil {
		wrongAt(open.Line, "the block has no end")
	}
	if said != nil {
		wrongAt(saidAt, "the comment belongs to the line before a block")
	}
	return blocks, errors.Join(faults...)
}

// command is what a line begins with that somebody is meant to type.
var command = regexp.MustCompile(`(?m)^(?:\$ |(?:[A-Z_]+=\S+ )*(?:sudo )?(?:bin/)?(?:curl|hydrallm|docker|make|kubectl|helm|npx|npm|pip|brew|apt-get|systemctl|export|go) )`)

// fault says what is wrong with how a block is marked, or "".
func (b *Block) fault() string {
	byLanguage := []string{Text, YAML, JSON, TOML, Shell, Python, JavaScript}
	switch {
	case b.Lang == "":
		return "the block has no language: text for what nobody types, sh for commands"
	case b.How == Server && b.Lang != Shell:
		return "a server is a block of sh"
	case (b.How == Untested || b.How == Tested || b.How == File) && b.Value == "":
		return fmt.Sprintf("%q wants a value", b.How)
	case b.How == ByLanguage && !slices.Contains(byLanguage, b.Lang):
		return fmt.Sprintf("nothing tests a block of %s: say <!-- tested: TestName --> or <!-- untested: WHY --> in the line before it", b.Lang)
	case b.Lang == Text && b.How == ByLanguage && command.MatchString(b.Text):
		return "this is a command: its language is sh"
	}
	return ""
}
