// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

// OfVersion is the path of a program of ours, gateway or agent, that takes itself for one of
// another version; what it does is what this source does.
func OfVersion(ctx context.Context, name, version string) string {
	ginkgo.GinkgoHelper()
	built := filepath.Join(ginkgo.GinkgoT().TempDir(), name)
	out, err := exec.CommandContext(ctx, "go", "build", "-ldflags=-X fleetgate.io/fleetgate/pkg/version.version="+version, "-o="+built,
		"fleetgate.io/fleetgate/cmd/"+name).CombinedOutput()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "building %s of version %s: %s", name, version, out)
	return built
}
