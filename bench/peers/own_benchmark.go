//go:build test_performance

package main

// What only the tests of Karpenter's scheduler import: with these the module can build them, and so run Karpenter's own
// benchmark, which is one of its tests.
import (
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "sigs.k8s.io/karpenter/pkg/test/expectations"
)
