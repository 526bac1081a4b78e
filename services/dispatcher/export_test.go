package dispatcher

import "hydrallm/shared/bus"

// Store is the store of slots and dialogues on a bucket.
type Store = store

// NewStore gives the store on a bucket.
func NewStore(b *bus.Bucket) Store { return store{b} }
