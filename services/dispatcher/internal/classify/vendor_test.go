package classify

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fixtures"
)

// what an error means is in the answer. A vendor that is reached under another name, through a proxy or a provider of the operator's
// own, is understood as well; only whether a limit is one of the model depends on who it is.
func TestFixturesOfUnknownVendors(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.All() {
		if f.Concern() == "" {
			continue
		}
		want := verdictOn(f)
		f.File = "nobody/" + path.Base(f.File)
		got := verdictOn(f)
		want.PerModel = got.PerModel
		require.Equal(t, want, got, f.About)
	}
}

// each class has one of the categories under which failures are recorded.
func TestCategories(t *testing.T) {
	t.Parallel()
	for class, want := range map[Class]string{
		Rate: "RESOURCE_EXHAUSTED", Quota: "RESOURCE_EXHAUSTED", Payment: "RESOURCE_EXHAUSTED", Auth: "AUTH_FAILURE", Forbidden: "AUTH_FAILURE",
		Model: "MODEL_NOT_FOUND", Client: "VALIDATION_ERROR", Size: "VALIDATION_ERROR", Upstream: "SERVICE_UNAVAILABLE",
	} {
		require.Equal(t, want, class.Category(), class)
	}
}
