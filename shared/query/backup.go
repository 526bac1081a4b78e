package query

import "time"

// GetBackup gives a backup of all that is kept, piece by piece; GET /v1/admin/backup. The first question, without an id, begins one at any session-writer. The
// others go to that instance, one after the other; a backup that nobody goes on with is given up after some minutes.
var GetBackup = Op[BackupPiece, BackupData]{SessionWriter, "backup", 2 * time.Minute}

// BackupPiece names a piece of a backup.
type BackupPiece struct {
	ID    string `json:"id,omitempty"`   // "" = begin one
	Piece int    `json:"piece"`          // from 0 on
	Drop  bool   `json:"drop,omitempty"` // nobody wants the rest of it
}

// BackupData is a piece.
type BackupData struct {
	Instance string `json:"instance"` // who has the backup
	ID       string `json:"id"`
	Data     []byte `json:"data"`
	End      bool   `json:"end,omitempty"` // there are no more
}
