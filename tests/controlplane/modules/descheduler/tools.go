//go:build tools

// Package tools pins a neighbour that the tests run beside graphsched.
package tools

import _ "sigs.k8s.io/descheduler/cmd/descheduler"
