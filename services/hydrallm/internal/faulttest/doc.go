// Package faulttest tests the whole gateway under random faults of upstreams and clients. It holds nothing but tests.
package faulttest
