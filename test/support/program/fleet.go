// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

// Fleet starts a hub and members as an option says, in a folder of the spec's or the suite's,
// and stops them after it.
func Fleet(ctx context.Context, o fleet.Options) *fleet.Fleet {
	ginkgo.GinkgoHelper()
	home, err := env.Home()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	o.Dir, o.BinDir, o.Verbosity = ginkgo.GinkgoT().TempDir(), filepath.Join(home, "bin"), 2
	o.Progress = func(line string) { ginkgo.GinkgoWriter.Println(line) }
	started, err := fleet.Start(ctx, o)
	if started != nil {
		ginkgo.DeferCleanup(func(ctx context.Context) { gomega.Expect(started.Stop(ctx)).To(gomega.Succeed()) })
	}
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return started
}
