// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package console_test looks at the console as people do: in a browser, over a real hub with
// a real gateway and two members.
package console_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes/scheme"

	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/kubelet"
	"fleetgate.io/fleetgate/test/support/program"
)

const first, second = "member-1", "member-2"

var (
	running *fleet.Fleet
	// chromium is the browser's program, axe the text of the script that examines pages.
	chromium, axe string
)

func TestConsole(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute) // Beside four other fleets on two cores a stage took more than one.
	SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	RunSpecs(t, "The console in a browser", Label("e2e", "console"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

// prepareBrowser has the browser and axe-core installed where they are not.
func prepareBrowser(ctx context.Context) {
	GinkgoHelper()
	command := exec.CommandContext(ctx, filepath.Join("..", "..", "..", "hack", "browser.sh"))
	command.Stderr = GinkgoWriter
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), "hack/browser.sh says above what is missing")
	lines := strings.Fields(string(out))
	Expect(lines).To(HaveLen(2))
	chromium, axe = lines[0], fileOf(lines[1], "package/axe.min.js")
}

// fileOf is a file of an archive.
func fileOf(archive, name string) string {
	GinkgoHelper()
	file, err := os.Open(archive)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = file.Close() }()
	unpacked, err := gzip.NewReader(file)
	Expect(err).NotTo(HaveOccurred())
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		Expect(errors.Is(err, io.EOF)).To(BeFalse(), "%s has no %s", archive, name)
		Expect(err).NotTo(HaveOccurred())
		if header.Name == name {
			text, err := io.ReadAll(files)
			Expect(err).NotTo(HaveOccurred())
			return string(text)
		}
	}
}

// allowed lets the hub's administrator do everything on the members, too.
const allowed = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: hub-admins}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "fleetgate:admins"}]
`

// startFleet starts a hub with two members for the specs of a container.
func startFleet(ctx context.Context) {
	GinkgoHelper()
	running = program.Fleet(ctx, fleet.Options{Members: []string{first, second}})
	DeferCleanup(func() { running = nil }) // Other containers have none.
	Expect(running.AwaitAnswers(ctx, time.Minute)).To(Succeed())
	for i, member := range []string{first, second} {
		hub(ctx, "", "label", "membercluster", member, "name="+member, "region="+[]string{"eu", "us"}[i])
		onMember(ctx, member, allowed, "apply", "--filename=-")
	}
}

// hub runs kubectl on the hub, onMember on a member itself.
func hub(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	out, err := running.Kubectl(ctx, running.HubKubeconfig(), input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func onMember(ctx context.Context, member, input string, args ...string) string {
	GinkgoHelper()
	out, err := running.Kubectl(ctx, adminOf(member), input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// memberOf is a member of the fleet.
func memberOf(name string) *env.Cluster {
	GinkgoHelper()
	for _, m := range running.Members {
		if m.Name == name {
			return m.Cluster
		}
	}
	Fail("no member " + name)
	return nil
}

// adminOf is a kubeconfig of somebody who may do everything on a member, without the hub.
func adminOf(member string) string {
	GinkgoHelper()
	kubeconfig, err := memberOf(member).Kubeconfig("administrator", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	return kubeconfig
}

// pod makes one on the first member that runs on a kubelet which has a log for it.
func pod(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	k := kubelet.Start()
	DeferCleanup(k.Close)
	c, err := memberOf(first).Client(scheme.AddToScheme)
	Expect(err).NotTo(HaveOccurred())
	_, err = k.Node(ctx, c, "with-logs")
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		_, err := kubelet.Pod(ctx, c, "with-logs", namespace, name)
		return err
	}).Should(Succeed())
}
