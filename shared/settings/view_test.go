package settings_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/settings"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
)

// a service has what is stored from its start on, and each change at once; when nothing is stored any more the file counts.
func TestWhatIsStoredCounts(t *testing.T) {
	t.Parallel()
	b := bustest.Start(t)
	bucket, err := b.Bucket(t.Context(), subject.SettingsBucket)
	require.NoError(t, err)
	put := func(text string) uint64 {
		revision, err := bucket.Put(t.Context(), settings.Key, []byte(text))
		require.NoError(t, err)
		return revision
	}
	put(`{"server.locale":"ko","server.port":1,"of.another.version":{}}`)
	file := configtest.Parse(t, "server: {locale: en}")
	v := settings.New(file, slog.New(slog.DiscardHandler))
	require.NoError(t, v.Follow(t.Context(), b))
	t.Cleanup(v.Stop)
	require.Equal(t, "ko", v.Config().Server.Locale)
	require.Equal(t, 8100, v.Config().Server.Port, "it is no live setting")
	require.Same(t, file, v.File())

	var seen []bool
	v.OnChange(func(now *config.Config) { seen = append(seen, now.Log.Communication) })
	revision := put(`{"log.communication":true}`)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	require.NoError(t, v.Await(ctx, revision))
	require.Equal(t, []bool{false, true}, seen)
	require.Equal(t, "en", v.Config().Server.Locale)
	require.Len(t, v.Stored(), 1)

	require.NoError(t, v.Await(ctx, put(`no JSON`)-1))
	revision = put(`{"server.locale":"ko"}`)
	require.NoError(t, v.Await(ctx, revision))
	require.Equal(t, "ko", v.Config().Server.Locale)
	require.NoError(t, bucket.Delete(t.Context(), settings.Key, 0), "as when NATS loses its disk")
	v.Rebase(configtest.Parse(t, "server: {locale: en, port: 8101}"))
	require.Equal(t, "ko", v.Config().Server.Locale, "it is stored still")
	require.Equal(t, 8101, v.Config().Server.Port)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, v.Await(over, 1<<40), context.Canceled)
}
