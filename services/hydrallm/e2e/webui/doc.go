// Package webui looks at the web interface with a real browser, before the whole gateway in one process. With -screenshots DIR its tests write pictures of
// all sections there. Those with axe, which npm installs once on a machine after the lock file in node, have the build tag e2e.
package webui
