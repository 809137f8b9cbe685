// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

// needsIPv6 skips a spec on a machine without ::1.
func needsIPv6() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		Skip("This machine has no ::1 to listen at: " + err.Error())
	}
	Expect(listener.Close()).To(Succeed())
}

// knowsLocalhost returns the programs directory for a hub whose API server resolves localhost to
// ::1. The hub calls the gateway by that name, because a Service cannot be called ::1. If the
// machine does not resolve it so, root can mount another /etc/hosts for the API server.
func knowsLocalhost(ctx context.Context) string {
	GinkgoHelper()
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	programs := filepath.Join(home, "bin")
	if found, err := net.DefaultResolver.LookupIP(ctx, "ip6", "localhost"); err == nil && len(found) > 0 {
		return programs
	}
	dir := GinkgoT().TempDir()
	hosts := filepath.Join(dir, "hosts")
	Expect(os.WriteFile(hosts, []byte("::1 localhost\n"), 0o600)).To(Succeed())
	inside := []string{"unshare", "--mount", "--propagation=private", "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts}
	if out, err := exec.CommandContext(ctx, inside[0], append(inside[1:], "true")...).CombinedOutput(); err != nil {
		Skip("This machine does not resolve localhost to ::1 (add it to /etc/hosts) and does not allow a private mount of that file: " + string(out))
	}
	entries, err := os.ReadDir(programs)
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		if entry.Name() != "kube-apiserver" {
			Expect(os.Symlink(filepath.Join(programs, entry.Name()), filepath.Join(dir, entry.Name()))).To(Succeed())
		}
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s --mount --propagation=private sh -c 'mount --bind \"$0\" /etc/hosts && exec \"$@\"' %q %q \"$@\"\n",
		inside[0], hosts, filepath.Join(programs, "kube-apiserver"))
	Expect(os.WriteFile(filepath.Join(dir, "kube-apiserver"), []byte(script), 0o700)).To(Succeed())
	return dir
}

var _ = Describe("A fleet on ::1 alone", Label("matrix"), func() {
	for what, tunnel := range map[string]string{
		"through the hub's API server":   fleet.TunnelNative,
		"through the port for agents":    fleet.TunnelPort,
		"on data connections":            fleet.TunnelData,
		"by Konnectivity, at that port,": fleet.TunnelKonnectivity,
	} {
		It("registers its members and reaches them "+what+" with requests and watches", func(ctx SpecContext) {
			needsIPv6()
			f := program.Fleet(ctx, fleet.Options{Members: []string{"member-1"}, Tunnel: tunnel, IPv6: true, HubBinDir: knowsLocalhost(ctx)})
			Expect(f.AwaitAnswers(ctx, time.Minute)).To(Succeed())
			for _, server := range []string{f.Hub.URL, f.Members[0].Cluster.URL, f.GatewayAPI(), f.Members[0].AgentMetrics()} {
				Expect(server).To(ContainSubstring("//[::1]:"))
			}

			By("placing an object and watching its changes through the tunnel")
			apply := func(value string) {
				GinkgoHelper()
				_, err := f.Kubectl(ctx, f.HubKubeconfig(), `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: `+value+`}
---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: shop}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: shop}]
  policy: {placementType: PickAll}
`, "apply", "--filename=-")
				Expect(err).NotTo(HaveOccurred())
			}
			apply("red")
			Eventually(func() (string, error) {
				return f.Kubectl(ctx, f.MemberKubeconfig("member-1"), "", "get", "configmap", "settings", "--namespace=shop", "--output=jsonpath={.data.colour}")
			}).WithTimeout(time.Minute).Should(Equal("red"))
			following, end := context.WithCancel(ctx)
			watch := exec.CommandContext(following, filepath.Join(f.BinDir, "kubectl"), "--kubeconfig="+f.MemberKubeconfig("member-1"),
				"get", "configmap", "settings", "--namespace=shop", "--watch", "--output=jsonpath={.data.colour}{\"\\n\"}")
			seen, err := gexec.Start(watch, GinkgoWriter, GinkgoWriter)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() {
				end()
				seen.Kill().Wait()
			})
			Eventually(seen).WithTimeout(time.Minute).Should(gbytes.Say("red"))
			apply("green")
			Eventually(seen).WithTimeout(time.Minute).Should(gbytes.Say("green"))
		})
	}
})
