//go:build e2e

package webui

import "testing"

// axe finds nothing on the page of the demo, before and after a scene.
func TestAxeDemo(t *testing.T) {
	t.Parallel()
	script := axe(t)
	v := shown(t)
	v.everywhere(script, "the demo")
	v.play("failover")
	v.everywhere(script, "the demo with a scene")
}
