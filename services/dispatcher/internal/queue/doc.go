// Package queue puts requests that wait for a slot of a model in one order over all dispatchers. A request that waits is an entry of a store that all
// of them follow, so that each knows who is first. Only the first one tries to get a slot; how many there are is not decided here.
package queue
