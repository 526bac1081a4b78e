package dialect

import "errors"

// ErrUnsupported says that a provider of this dialect has no such operation.
var ErrUnsupported = errors.New("the provider does not offer this operation")
