// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
)

// OfVersion is the path of a program of ours, gateway or agent, that takes itself for one of
// another version; what it does is what this source does.
func OfVersion(ctx context.Context, name, version string) string {
	ginkgo.GinkgoHelper()
	return built(ctx, ginkgo.GinkgoT().TempDir(), name, "-ldflags=-X fleetgate.io/fleetgate/pkg/telemetry/version.version="+version)
}

// built is the path of a program of ours that was built into a folder with a flag of go's.
func built(ctx context.Context, dir, name, flag string) string {
	ginkgo.GinkgoHelper()
	path := filepath.Join(dir, name)
	command := exec.CommandContext(ctx, "go", "build", flag, "-o="+path, "fleetgate.io/fleetgate/cmd/"+name)
	command.Env = env.ForGo()
	out, err := command.CombinedOutput()
	gomega.Expect(err).NotTo(gomega.HaveOccurred(), "building %s with %s: %s", name, flag, out)
	return path
}
