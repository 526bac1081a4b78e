package seal_test

import (
	"errors"
	"fmt"

	"hydrallm/shared/seal"
)

// A key of a provider is stored so that only who has the admin key can read it, and only as a key of this provider.
func Example() {
	const adminKey = "5d0c8f0e6f1b4a7e9a3b2c1d0e9f8a7b"
	sealed, err := seal.Seal(adminKey, []byte("gsk_secret"), "groq")
	if err != nil {
		fmt.Println(err)
		return
	}
	plain, err := seal.Open(adminKey, sealed, "groq")
	fmt.Println(string(plain), err)

	_, err = seal.Open(adminKey, sealed, "gemini")
	fmt.Println(errors.Is(err, seal.ErrOpen))
	// Output:
	// gsk_secret <nil>
	// true
}

// Two processes agree on whether they have the same key without telling it.
func ExampleFingerprint() {
	const adminKey = "5d0c8f0e6f1b4a7e9a3b2c1d0e9f8a7b"
	a, _ := seal.Fingerprint(adminKey, "gsk_secret", "groq")
	b, _ := seal.Fingerprint(adminKey, "gsk_secret", "groq")
	c, _ := seal.Fingerprint(adminKey, "gsk_other", "groq")
	fmt.Println(a == b, a == c)
	// Output: true false
}
