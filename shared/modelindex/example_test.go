package modelindex_test

import (
	"fmt"

	"hydrallm/shared/modelindex"
)

// The model of a provider for a request that names none: the configured one while it is known to be there, else one that is listed.
func ExampleBook_Default() {
	book := modelindex.NewBook(modelindex.Listing{Provider: "groq", Models: []modelindex.Model{
		{ID: "llama-3.3-70b", Tier: "free"}, {ID: "gpt-oss-120b", Tier: "premium"},
	}})
	for _, configured := range []string{"llama-3.3-70b", "retired-model"} {
		m, ok := book.Default("groq", modelindex.Defaults{Free: configured}, false, nil)
		fmt.Println(configured, "->", m.ID, ok)
	}
	m, ok := book.Default("groq", modelindex.Defaults{}, true, nil)
	fmt.Println("premium ->", m.ID, ok)
	_, ok = book.Default("cerebras", modelindex.Defaults{}, false, nil)
	fmt.Println("not listed yet:", ok)
	// Output:
	// llama-3.3-70b -> llama-3.3-70b true
	// retired-model -> llama-3.3-70b true
	// premium -> gpt-oss-120b true
	// not listed yet: false
}

// Who offers a model is found by its exact name.
func ExampleBook_Providers() {
	book := modelindex.NewBook(
		modelindex.Listing{Provider: "groq", Models: []modelindex.Model{{ID: "llama-3.3-70b"}}},
		modelindex.Listing{Provider: "cerebras", Models: []modelindex.Model{{ID: "llama-3.3-70b"}, {ID: "qwen-3"}}},
	)
	fmt.Println(book.Providers("llama-3.3-70b"))
	// Output: [cerebras groq]
}
