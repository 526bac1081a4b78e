package process

import (
	"context"
	"log/slog"
	"os"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
)

// Sockets takes over the listening sockets that systemd holds for this process (LISTEN_FDS, LISTEN_PID), nil for none. They stay open for as long as the
// process lives: who connects while nothing listens on them waits in the kernel. The first call gives them, later ones nothing.
func Sockets() []*os.File { return activation.Files(true) }

// Notifier tells systemd how the process is (NOTIFY_SOCKET), if anybody wants to know. It is the last of the services to start, and the first to stop.
type Notifier struct{ Log *slog.Logger }

// Start says that the process works.
func (n Notifier) Start(ctx context.Context) error {
	n.tell(ctx, daemon.SdNotifyReady)
	return nil
}

// Stop says that it ends.
func (n Notifier) Stop(ctx context.Context) error {
	n.tell(ctx, daemon.SdNotifyStopping)
	return nil
}

// reload says that fn reads the configuration again, while it does.
func (n Notifier) reload(ctx context.Context, fn func()) {
	n.tell(ctx, daemon.SdNotifyReloading+"\n"+daemon.SdNotifyMonotonicUsec())
	fn()
	n.tell(ctx, daemon.SdNotifyReady)
}

func (n Notifier) tell(ctx context.Context, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.Log.WarnContext(ctx, "telling systemd", slog.Any("error", err))
	}
}
