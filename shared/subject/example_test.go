package subject_test

import (
	"fmt"

	"hydrallm/shared/subject"
)

// Every name on the bus comes from here; a request is found by the last token.
func Example() {
	reply := subject.Reply("ingress-1", "06h2nkpjnee2a92gav80u88fdc")
	fmt.Println(reply)
	fmt.Println(subject.Last(reply))
	fmt.Println(subject.Query("dispatcher", "status"))
	fmt.Println(subject.Log("ROUTING"))
	// Output:
	// hydra.v1.reply.ingress-1.06h2nkpjnee2a92gav80u88fdc
	// 06h2nkpjnee2a92gav80u88fdc
	// hydra.v1.query.dispatcher.status
	// hydra.v1.log.routing
}
