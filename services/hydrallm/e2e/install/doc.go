// Package install goes each way to install the gateway on a clean machine, up to the first streamed answer, and says how long and how many commands it took.
package install
