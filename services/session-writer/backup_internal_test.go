package sessionwriter

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/query"
)

// a backup that comes to nothing, such as that of a database that does not answer, ends by itself and is in nobody's way.
func TestBackupThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		b := &backups{id: "s1", work: t.Context(), running: &running}
		b.start(func(ctx context.Context, w io.Writer) error {
			if _, err := w.Write(make([]byte, backupPiece)); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
		one := b.now.id
		got, err := b.get(t.Context(), query.BackupPiece{ID: one})
		require.NoError(t, err)
		require.Len(t, got.Data, backupPiece)
		require.False(t, got.End)
		_, err = b.get(t.Context(), query.BackupPiece{ID: one, Piece: 1})
		require.ErrorIs(t, err, context.Canceled)
		running.Wait()
		require.Nil(t, b.now)
		_, err = b.get(t.Context(), query.BackupPiece{ID: one, Piece: 1})
		require.ErrorIs(t, err, errBackupGone)
	})
}
