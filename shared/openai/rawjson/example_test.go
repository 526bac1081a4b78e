package rawjson_test

import (
	"fmt"

	"hydrallm/shared/openai/rawjson"
)

// A member is replaced in the text; numbers, order and white space of the others stay.
func ExampleAppendSet() {
	text := []byte(`{ "temperature": 1.0, "model": "a", "x": 1e2 }`)
	fmt.Println(string(rawjson.AppendSet(nil, text, "model", []byte(`"b"`))))
	// Output: { "temperature": 1.0, "model": "b", "x": 1e2 }
}

// A text is walked once; values that are not entered are only checked.
func ExampleScanner() {
	text := []byte(`{"model": "a", "messages": [{"role": "user"}, {"role": "tool"}]}`)
	roles := 0
	s := rawjson.Scan(text)
	if s.Enter('{') {
		for s.Member() {
			if string(s.Key()) == "messages" && s.Enter('[') {
				for s.Element() {
					roles++
					s.Skip()
				}
				continue
			}
			s.Skip()
		}
	}
	fmt.Println(roles, s.End())
	// Output: 2 true
}

// Members are found by their place.
func ExampleMembers() {
	text := []byte(`{"a": 1, "b": [true]}`)
	for m := range rawjson.Members(text) {
		fmt.Printf("%s is %s\n", m.Name(), m.Value.Of(text))
	}
	// Output:
	// a is 1
	// b is [true]
}
