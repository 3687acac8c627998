//go:build tools

// Package tools pins the fake kubelets that the tests run against.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
