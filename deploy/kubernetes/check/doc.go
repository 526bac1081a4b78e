// Package check builds the manifests of deploy/kubernetes and looks whether they are what Kubernetes takes and fit together. It is a module of its own, so that the
// types of Kubernetes are no dependency of the gateway.
package check
