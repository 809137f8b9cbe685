// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
	"fleetgate.io/fleetgate/test/support/kubelet"
)

var _ = Describe("k9s in a terminal", Label("matrix"), func() {
	const escape, enter = "Escape", "Enter"

	// Each step types keys and waits for a text.
	It("shows a view that qualifies names like a cluster", SpecTimeout(5*time.Minute), func(ctx SpecContext) {
		for _, member := range members {
			expect.CreatedForSpec(ctx, on[member], unscaled("site"))
			expect.CreatedForSpec(ctx, on[member], &corev1.Event{
				ObjectMeta: build.In(namespace, "looked"), Reason: "Looked", Message: "somebody looked", Type: corev1.EventTypeNormal,
				InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: twin},
			})
		}
		k9s := k9sOf(ctx, "qualified:")
		k9s.shows(ctx, "pods(all)", "member-1.web", "member-2.web", "member-2.api")

		k9s.types(ctx, ":", "deployments", enter)
		k9s.shows(ctx, "deployments(all)", "member-1.site", "member-2.site")
		k9s.types(ctx, ":", "events", enter)
		k9s.shows(ctx, "events(all)")
		k9s.types(ctx, "/", "Looked", enter)
		k9s.shows(ctx, "</Looked>", first, second, "pod/"+twin)
		k9s.types(ctx, ":", "pods "+namespace, enter)
		k9s.shows(ctx, "pods(shop)", "member-1.web", "member-2.web", "member-2.api")

		k9s.types(ctx, "/", "member-1", enter)
		k9s.shows(ctx, "pods(shop)[1] </member-1>", "member-1.web")
		k9s.types(ctx, "d")
		k9s.shows(ctx, "Describe(shop/member-1.web)", viewv1alpha1.LabelMember+"="+first)
		k9s.types(ctx, escape)
		k9s.shows(ctx, "pods(shop)[1] </member-1>")
		k9s.types(ctx, escape)
		k9s.shows(ctx, "member-2.api")

		k9s.types(ctx, "/", "api", enter)
		k9s.shows(ctx, "pods(shop)[1] </api>", "member-2.api")
		k9s.types(ctx, "l")
		k9s.shows(ctx, "Logs(shop/member-2.api", kubelet.FirstLine)
	})

	It("shows one of two objects with the same name in a view with plain names", SpecTimeout(5*time.Minute), func(ctx SpecContext) {
		k9s := k9sOf(ctx, "all")
		k9s.shows(ctx, "pods(all)")
		k9s.types(ctx, ":", "pods "+namespace, enter)
		k9s.shows(ctx, "pods(shop)[2]", pod, twin)
		k9s.types(ctx, "/", "web", enter)
		k9s.shows(ctx, "pods(shop)[1] </web>")
		k9s.types(ctx, "d")
		k9s.shows(ctx, "Describe(shop/web)", "is on 2 members (member-1, member-2)")
		k9s.types(ctx, escape)
		k9s.shows(ctx, "pods(shop)[1] </web>")
		k9s.types(ctx, ":", "pods "+namespace, enter)
		k9s.shows(ctx, "pods(shop)[2]")
		k9s.types(ctx, "/", "api", enter)
		k9s.shows(ctx, "pods(shop)[1] </api>")
		k9s.types(ctx, "l")
		k9s.shows(ctx, "Logs(shop/api", kubelet.FirstLine)
	})
})

// unscaled returns a Deployment without replicas.
func unscaled(name string) *appsv1.Deployment {
	none, labels := int32(0), map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: build.In(namespace, name), Spec: appsv1.DeploymentSpec{
		Replicas: &none,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "site"}}},
		},
	}}
}

// terminal is tmux with one program, which runs as for a user.
type terminal struct{ tmux, socket string }

// k9sOf starts k9s on the Pods of a view for a read-only user.
func k9sOf(ctx context.Context, view string) *terminal {
	GinkgoHelper()
	program, err := env.Program("k9s")
	Expect(err).NotTo(HaveOccurred(), "make k9s")
	tmux, err := exec.CommandContext(ctx, filepath.Join("..", "..", "..", "hack", "tmux.sh")).Output()
	Expect(err).NotTo(HaveOccurred(), "hack/tmux.sh names what is missing")
	dir := GinkgoT().TempDir()
	// Without this it checks for a newer version of itself.
	Expect(os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("k9s: {skipLatestRevCheck: true}\n"), 0o600)).To(Succeed())
	t := &terminal{tmux: strings.TrimSpace(string(tmux)), socket: filepath.Join(dir, "tmux")}
	t.run(ctx, "new-session", "-d", "-x", "160", "-y", "50",
		"HOME="+dir+" K9S_CONFIG_DIR="+dir+" K9S_LOGS_DIR="+dir+" KUBECONFIG= TERM=xterm-256color exec "+program+
			" --kubeconfig="+someone(ctx, "jane", team, view).fleet+" --readonly --all-namespaces --command=pods")
	DeferCleanup(func(ctx SpecContext) {
		if CurrentSpecReport().Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "k9s.log"))
			GinkgoWriter.Printf("What k9s logged:\n%s\n", log)
		}
		t.run(ctx, "kill-server")
	})
	return t
}

// run executes one tmux command without user settings.
func (t *terminal) run(ctx context.Context, arguments ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, t.tmux, append([]string{"-S", t.socket, "-f", os.DevNull}, arguments...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "tmux %s: %s", strings.Join(arguments, " "), out)
	return string(out)
}

// types sends keys one after another and text as typed.
func (t *terminal) types(ctx context.Context, keys ...string) {
	GinkgoHelper()
	t.run(ctx, append([]string{"send-keys"}, keys...)...)
	GinkgoWriter.Printf("typed %q\n", keys)
}

// shows waits until all texts are on the screen at once.
func (t *terminal) shows(ctx context.Context, texts ...string) {
	GinkgoHelper()
	Eventually(func() error {
		screen := t.run(ctx, "capture-pane", "-p")
		for _, text := range texts {
			if !strings.Contains(screen, text) {
				return fmt.Errorf("%q is not on the screen:\n%s", text, screen)
			}
		}
		GinkgoWriter.Printf("%s\n", screen)
		return nil
	}).Should(Succeed())
}
