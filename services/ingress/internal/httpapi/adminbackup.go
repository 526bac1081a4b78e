package httpapi

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/query"
)

// sendBackup gives a backup of all that is kept. An end of the connection without the last chunk says that something went wrong, as does the archive itself.
func sendBackup(x *exchange) error {
	a := x.api
	if x.IsHead() { // none is begun
		setBackupHeaders(&x.Response)
		return nil
	}
	first, err := query.GetBackup.Ask(a.Queries(), a.Bus, query.BackupPiece{})
	if err != nil {
		return err
	}
	x.note("backup", first.ID)
	setBackupHeaders(&x.Response)
	x.Response.SetBodyStream(&backupBody{api: a, piece: first, writer: deadlineWriter{conn: x.Conn()}}, -1)
	return nil
}

func setBackupHeaders(resp *fasthttp.Response) {
	resp.Header.SetContentType("application/gzip")
	resp.Header.Set("Content-Disposition", `attachment; filename="hydrallm-`+time.Now().UTC().Format("20060102T150405Z")+`.tar.gz"`)
	resp.Header.Set("Cache-Control", "no-store")
}

// backupBody writes a backup piece by piece, as the client takes it.
type backupBody struct {
	api    *API
	piece  query.BackupData
	writer deadlineWriter
}

// WriteTo fetches pieces until the last one.
func (b *backupBody) WriteTo(w io.Writer) (n int64, err error) {
	for i := 1; ; i++ {
		if err := b.writer.write(w, b.piece.Data); err != nil {
			b.drop()
			return n, err
		}
		n += int64(len(b.piece.Data))
		if b.piece.End {
			return n, nil
		}
		next := query.GetBackup.AskEach(b.api.Queries(), b.api.Bus, []string{b.piece.Instance}, query.BackupPiece{ID: b.piece.ID, Piece: i})[0]
		if next.Err != nil {
			b.api.Log.Warn("a backup is broken off", slog.Any("error", next.Err))
			return n, fmt.Errorf("fetching a backup: %w", next.Err)
		}
		b.piece = next.Answer
	}
}

// drop says that nobody wants the rest, so that the next backup need not wait.
func (b *backupBody) drop() {
	if b.piece.End {
		return
	}
	question := query.BackupPiece{ID: b.piece.ID, Drop: true}
	if got := query.GetBackup.AskEach(b.api.Queries(), b.api.Bus, []string{b.piece.Instance}, question)[0]; got.Err != nil {
		b.api.Log.Warn("a backup that nobody wants any more", slog.Any("error", got.Err))
	}
}

// SupportsBodyWriteTo makes fasthttp use WriteTo.
func (b *backupBody) SupportsBodyWriteTo() bool { return true }

// Read is never used, since fasthttp uses WriteTo.
func (b *backupBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

var _ fasthttp.BodyWriterTo = (*backupBody)(nil)
