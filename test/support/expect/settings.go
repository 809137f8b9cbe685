// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"os"
	"strconv"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// Setting reads a variable of the environment, which otherwise has a default.
func Setting[T any](name string, otherwise T, parse func(string) (T, error)) T {
	ginkgo.GinkgoHelper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	value, err := parse(text)
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), name)
	return value
}

// Seed is the seed of a spec with random operations: FLEETGATE_SEED, which repeats a failure, or a
// fixed one.
func Seed(fixed uint64) uint64 {
	ginkgo.GinkgoHelper()
	return Setting("FLEETGATE_SEED", fixed, func(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) })
}
