package natsrights

import (
	"fmt"
	"strings"
)

const header = `# Who may do what at the NATS server. Made from services/hydrallm/internal/natsrights by its test with -update; do not edit.
# The public keys are in nkeys.conf, which identities.sh writes.
include nkeys.conf

accounts {
  HYDRA {
    jetstream: enabled
    users: [
`

const footer = `    ]
  }
  SYS {
    users: [{nkey: $NKEY_OPERATOR}] # looks after the server: nats --nkey operator.nk server report jetstream
  }
}
system_account: SYS
`

// Conf gives the part of a server's configuration that says who may do what.
func Conf() string {
	var b strings.Builder
	b.WriteString(header)
	for _, service := range Services() {
		r := Of(service)
		fmt.Fprintf(&b, "      {\n        nkey: $NKEY_%s\n        permissions {\n          publish: [\n", strings.ToUpper(strings.ReplaceAll(service, "-", "_")))
		write(&b, r.Publish)
		b.WriteString("          ]\n          subscribe: [\n")
		write(&b, r.Subscribe)
		b.WriteString("          ]\n          allow_responses: {max: 1, expires: \"5m\"}\n        }\n      }\n")
	}
	b.WriteString(footer)
	return b.String()
}

func write(b *strings.Builder, subjects []string) {
	for _, s := range subjects {
		fmt.Fprintf(b, "            %q\n", s)
	}
}
