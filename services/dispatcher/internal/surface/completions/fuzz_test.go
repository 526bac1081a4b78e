package completions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/surface/completions"
	"hydrallm/shared/contract"
)

func FuzzStream(f *testing.F) {
	r, err := completions.Surface{}.Read(&contract.Request{}, []byte(`{"model":"m","prompt":"hi","stream":true}`))
	require.NoError(f, err)
	answertest.FuzzStream(f, answertest.Options{IncludeUsage: true, To: r.Answer})
}
