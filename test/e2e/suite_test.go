// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// settle bounds the wait for recovery. It measures nothing, because test machines are slow and
	// shared.
	settle = 90 * time.Second
	poll   = 250 * time.Millisecond
)

func TestMainJob(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(settle)
	SetDefaultEventuallyPollingInterval(poll)
	RunSpecs(t, "The main job", Label("e2e"))
}

var _ = artifacts.Report()

// launched is a fleet that the launcher started.
type launched struct {
	dir string
	// fleet runs programs with the fleet's kubeconfigs.
	fleet *fleet.Fleet
}

// newFolder creates a directory for a fleet. At the end the fleet is stopped; after a failure its
// logs and objects are kept.
func newFolder() *launched {
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	dir, err := os.MkdirTemp("", "fleetgate-e2e-")
	Expect(err).NotTo(HaveOccurred())
	l := &launched{dir: dir, fleet: &fleet.Fleet{Options: fleet.Options{Dir: dir, BinDir: filepath.Join(home, "bin")}}}
	DeferCleanup(func(ctx context.Context) {
		if CurrentSpecReport().Failed() {
			l.keepArtifacts(ctx)
		}
		out, err := l.launcher(ctx, "down")
		Expect(err).NotTo(HaveOccurred(), out)
	})
	return l
}

// tunnelReason is the reason that agents report for the tunnels' path in this run.
func tunnelReason() string {
	switch os.Getenv("FLEETGATE_TUNNEL") {
	case fleet.TunnelPort:
		return "ViaPort"
	case fleet.TunnelKonnectivity:
		return "ViaKonnectivity"
	}
	return "ViaHub"
}

// launcher runs the command behind `make up` and `make down`.
func (l *launched) launcher(ctx context.Context, command ...string) (string, error) {
	args := append([]string{"-dir=" + l.dir, "-v=2"}, command...)
	// This is the protocol of the members' tunnels if it is not the default.
	if tunnel := os.Getenv("FLEETGATE_TUNNEL"); tunnel != "" {
		args = append([]string{"-tunnel=" + tunnel}, args...)
	}
	args = append(skew.flags(), args...)
	launcher := exec.CommandContext(ctx, filepath.Join(l.fleet.BinDir, "fleet"), args...)
	var out strings.Builder
	launcher.Stdout = io.MultiWriter(&out, GinkgoWriter)
	launcher.Stderr = launcher.Stdout
	err := launcher.Run()
	return out.String(), err
}

// hub runs kubectl on the hub as user admin and fails the spec on an error.
func (l *launched) hub(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := l.fleet.Kubectl(ctx, l.fleet.HubKubeconfig(), "", args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// member runs kubectl on a member, through the hub.
func (l *launched) member(ctx context.Context, name string, args ...string) string {
	GinkgoHelper()
	out, err := l.fleet.Kubectl(ctx, l.fleet.MemberKubeconfig(name), "", args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// breakGlass is the kubeconfig of a cluster that bypasses the gateway.
func (l *launched) breakGlass(cluster string) string {
	return filepath.Join(l.dir, cluster, env.BreakGlass+".kubeconfig")
}

// process is one of gateway, member-1-agent and so on.
func (l *launched) process(name string) *env.Process {
	GinkgoHelper()
	all, err := env.Processes(l.dir)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range all {
		if p.Name() == name {
			return p
		}
	}
	Fail(fmt.Sprintf("no process %q was started in %s", name, l.dir))
	return nil
}

// keepArtifacts keeps the logs of gateway and agents, and logs and objects of the clusters.
func (l *launched) keepArtifacts(ctx context.Context) {
	target := os.Getenv(artifacts.Folder)
	if target == "" {
		return
	}
	target = filepath.Join(target, filepath.Base(l.dir))
	Expect(os.MkdirAll(target, 0o755)).To(Succeed())
	logs, err := filepath.Glob(filepath.Join(l.dir, "*.log"))
	Expect(err).NotTo(HaveOccurred())
	for _, path := range logs {
		data, err := os.ReadFile(path)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(filepath.Join(target, filepath.Base(path)), data, 0o644)).To(Succeed())
	}
	for _, name := range []string{"hub", "member-1", "member-2"} {
		cluster, err := env.Load(filepath.Join(l.dir, name))
		if err == nil {
			err = artifacts.Keep(ctx, target, cluster)
		}
		if err != nil {
			GinkgoWriter.Println("Not all artifacts were kept:", err)
		}
	}
	GinkgoWriter.Println("Logs and objects are in", target)
}
