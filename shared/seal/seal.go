// Package seal protects secrets, such as provider keys that are added while the gateway runs, where they are stored or sent: whoever can
// read the bucket or the traffic learns nothing, and whoever can write there can neither alter a sealed secret nor move it to another
// context unnoticed.
//
// It protects as well as the admin key is hard to guess, and no better: a key is derived from it quickly, so that somebody who has a sealed
// secret can try millions of candidates a second. Use a random admin key of 128 bits or more, such as the output of `openssl rand -hex 32`.
// It does not protect against somebody who has the admin key or reads the memory of the process, does not hide the length of a secret, and
// does not notice when a sealed secret is deleted or replaced by an older one of the same context. With another admin key nothing can be
// opened any more.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Errors.
var (
	ErrNoSecret = errors.New("there is no admin key to seal with")
	// ErrOpen says that the text was sealed with another admin key or for another context, was altered, or is no sealed text.
	ErrOpen = errors.New("the sealed text can't be opened: it belongs to another admin key or context, or is damaged")
)

// A sealed text of version 1 is:
//
//	1 byte    version
//	32 bytes  salt
//	12 bytes  nonce
//	          AES-256-GCM of the plain text with its tag of 16 bytes
//
// The key is HKDF-SHA256(secret, salt, "hydrallm seal 1"), another one for each text. The additional data is the version, then the context.
const (
	version    = 1
	saltSize   = 32
	nonceSize  = 12
	tagSize    = 16
	keySize    = 32
	headerSize = 1 + saltSize

	sealLabel        = "hydrallm seal 1"
	fingerprintLabel = "hydrallm fingerprint 1 "
)

// Seal encrypts plain under a key derived from secret, the admin key. context says what the text belongs to, such as the id of a provider;
// Open wants the same.
func Seal(secret string, plain []byte, context string) ([]byte, error) {
	sealed := make([]byte, headerSize, headerSize+nonceSize+len(plain)+tagSize)
	sealed[0] = version
	rand.Read(sealed[1:headerSize])
	box, err := boxFor(secret, sealed[1:headerSize])
	if err != nil {
		return nil, err
	}
	return box.Seal(sealed, nil, plain, additional(context)), nil //nolint:gosec // the cipher makes the nonce itself and wants none
}

// Open decrypts what Seal made of the same secret and context.
func Open(secret string, sealed []byte, context string) ([]byte, error) {
	if len(sealed) < headerSize+nonceSize+tagSize || sealed[0] != version {
		return nil, fmt.Errorf("reading the format: %w", ErrOpen)
	}
	box, err := boxFor(secret, sealed[1:headerSize])
	if err != nil {
		return nil, err
	}
	plain, err := box.Open(nil, nil, sealed[headerSize:], additional(context))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// boxFor makes the cipher of one text. It puts a random nonce before what it seals.
func boxFor(secret string, salt []byte) (cipher.AEAD, error) {
	key, err := derive(secret, salt, sealLabel)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("preparing the cipher: %w", err)
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("preparing the cipher: %w", err)
	}
	return box, nil
}

func derive(secret string, salt []byte, label string) ([]byte, error) {
	if secret == "" {
		return nil, ErrNoSecret
	}
	key, err := hkdf.Key(sha256.New, []byte(secret), salt, label, keySize)
	if err != nil {
		return nil, fmt.Errorf("deriving a key: %w", err)
	}
	return key, nil
}

func additional(context string) []byte { return append([]byte{version}, context...) }

// Fingerprint gives a value a name by which it is recognised within a context, of 32 hexadecimal digits: equal values have equal names,
// so that each is stored once. Without the admin key the name tells nothing of the value, and a guess of the value can't be checked.
func Fingerprint(secret, value, context string) (string, error) {
	key, err := derive(secret, nil, fingerprintLabel+context)
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(value))
	const size = 16 // bytes: far more than it takes to tell the keys of a gateway apart
	return hex.EncodeToString(mac.Sum(nil)[:size]), nil
}
