// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"bufio"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("A watch", func() {
	It("sends kubectl the events of every member", func(ctx SpecContext) {
		jane := someone(ctx, "jane", team)
		program, err := env.Kubectl()
		Expect(err).NotTo(HaveOccurred())
		watching, stop := context.WithCancel(ctx)
		command := exec.CommandContext(watching, program, "--kubeconfig="+jane.fleet, "--cache-dir="+GinkgoT().TempDir(), "-n", namespace, "get", "configmaps", "--watch")
		command.Env = append(command.Environ(), "KUBECONFIG=")
		out, err := command.StdoutPipe()
		Expect(err).NotTo(HaveOccurred())
		Expect(command.Start()).To(Succeed())
		DeferCleanup(func() {
			stop()
			_ = command.Wait()
		})
		rows := make(chan string, 100)
		go func() {
			defer close(rows)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				rows <- strings.Join(strings.Fields(lines.Text())[:2], " ")
			}
		}()
		Eventually(rows).Should(Receive(Equal("CLUSTER NAME")))
		Eventually(rows).Should(Receive(Equal("member-1 kube-root-ca.crt")))
		Eventually(rows).Should(Receive(Equal("member-2 kube-root-ca.crt")))
		for _, member := range []string{second, first} {
			made := build.ConfigMap(namespace, "watched-on-"+member, "a", "b")
			expect.Created(ctx, on[member], made)
			Eventually(rows).Should(Receive(Equal(member + " watched-on-" + member)))
			Expect(on[member].Delete(ctx, made)).To(Succeed())
			Eventually(rows).Should(Receive(Equal(member + " watched-on-" + member)))
		}
	})

	It("keeps an informer synced when a member is lost", func(ctx SpecContext) {
		config, err := clientcmd.BuildConfigFromFlags("", someone(ctx, "jane", team, "qualified:").fleet)
		Expect(err).NotTo(HaveOccurred())
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(namespace))
		store := factory.Core().V1().ConfigMaps().Informer().GetStore()
		informing, stop := context.WithCancel(ctx)
		factory.StartWithContext(informing)
		DeferCleanup(func() {
			stop()
			factory.Shutdown()
		})
		known := func() []string {
			names := []string{}
			for _, object := range store.List() {
				if of := object.(*corev1.ConfigMap); strings.Contains(of.Name, "kept") {
					names = append(names, of.Name+"="+of.Data["n"])
				}
			}
			slices.Sort(names)
			return names
		}
		there := func() (names []string) {
			for _, member := range []string{first, second} {
				var list corev1.ConfigMapList
				Expect(on[member].List(ctx, &list, client.InNamespace(namespace))).To(Succeed())
				for _, of := range list.Items {
					if strings.Contains(of.Name, "kept") {
						names = append(names, member+"."+of.Name+"="+of.Data["n"])
					}
				}
			}
			slices.Sort(names)
			return names
		}
		change := func(n int) {
			GinkgoHelper()
			for _, member := range []string{first, second} {
				kept := build.ConfigMap(namespace, "kept", "n", fmt.Sprint(n))
				if n > 0 {
					Expect(on[member].Update(ctx, kept)).To(Succeed())
				} else {
					expect.Created(ctx, on[member], kept)
				}
				expect.Created(ctx, on[member], build.ConfigMap(namespace, fmt.Sprintf("kept-%d", n), "n", "0"))
			}
			Expect(on[first].Delete(ctx, build.ConfigMap(namespace, fmt.Sprintf("kept-%d", n)))).To(Succeed())
		}
		for n := range 3 {
			change(n)
			Eventually(known).Should(Equal(there()))
		}
		agent := fleetAgent(second)
		Expect(agent.Stop(ctx)).To(Succeed())
		change(3)
		Expect(agent.Start(ctx)).To(Succeed())
		Eventually(known).Should(Equal(there()))
	})
})

// fleetAgent is the agent of a member.
func fleetAgent(member string) *env.Process {
	GinkgoHelper()
	for _, m := range running.Members {
		if m.Name == member {
			return m.Agent
		}
	}
	Fail("no member " + member)
	return nil
}
