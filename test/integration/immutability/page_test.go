// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/expect"
)

// A shown command is a command of the page with its printed output.
type shown struct{ command, output string }

// readPage returns the policy and the commands of a section.
func readPage(section string) (policy string, steps []shown) {
	GinkgoHelper()
	page, err := os.ReadFile("../../../docs/how-to/policies.md")
	Expect(err).NotTo(HaveOccurred())
	_, text, found := strings.Cut(string(page), "\n## "+section+"\n")
	Expect(found).To(BeTrue(), section)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, block := range regexp.MustCompile("(?s)```(yaml)?\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if block[1] == "yaml" {
			policy = block[2]
			continue
		}
		for _, step := range strings.Split("\n"+block[2], "\n$ ")[1:] {
			command, output, _ := strings.Cut(step, "\n")
			steps = append(steps, shown{command, strings.TrimSuffix(output, "\n")})
		}
	}
	return policy, steps
}

// pattern matches an output with any ages.
func (s shown) pattern() string {
	return "^" + regexp.MustCompile(`\b[0-9]+s\b`).ReplaceAllString(regexp.QuoteMeta(s.output), `[0-9hms]+`) + "\n$"
}

// shell runs commands as a user, with kubectl and the policy in a file.
type shell struct{ dir, kubeconfig, programs string }

func newShell(policy string) *shell {
	GinkgoHelper()
	program, err := env.Program("kubectl")
	Expect(err).NotTo(HaveOccurred())
	kubeconfig, err := hub.Kubeconfig("reader-of-the-page", "system:masters")
	Expect(err).NotTo(HaveOccurred())
	s := &shell{dir: GinkgoT().TempDir(), kubeconfig: kubeconfig, programs: filepath.Dir(program)}
	Expect(os.WriteFile(filepath.Join(s.dir, "policy.yaml"), []byte(policy), 0o600)).To(Succeed())
	return s
}

// run returns the output without trailing blanks.
func (s *shell) run(ctx context.Context, command string) string {
	GinkgoHelper()
	sh := exec.CommandContext(ctx, "sh", "-c", command)
	sh.Dir = s.dir
	sh.Env = append(os.Environ(), "HOME="+s.dir, "KUBECONFIG="+s.kubeconfig, "PATH="+s.programs+":"+os.Getenv("PATH"))
	output, err := sh.CombinedOutput()
	GinkgoWriter.Printf("$ %s\n%s", command, output)
	if err != nil {
		Expect(err).To(BeAssignableToTypeOf(&exec.ExitError{}), "a rejection")
	}
	return regexp.MustCompile(`(?m) +$`).ReplaceAllString(string(output), "")
}

// takesEffect waits until the hub enforces the current policy.
func takesEffect(ctx context.Context, policy string) {
	GinkgoHelper()
	eventuallyEnforced(ctx, policy)
	listener, heard := listening()
	current := &unstructured.Unstructured{}
	current.SetAPIVersion("admission.fleetgate.io/v1alpha1")
	current.SetKind("ImmutabilityPolicy")
	Expect(masters.Get(ctx, client.ObjectKey{Name: policy}, current)).To(Succeed())
	enforcement, _, err := unstructured.NestedString(current.Object, "spec", "enforcement")
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() bool {
		err := listener.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll)
		return enforcement == "Deny" && apierrors.IsInvalid(err) || enforcement == "Warn" && err == nil && len(heard.take()) > 0
	}).Should(BeTrue(), enforcement)
}

var _ = Describe("docs/how-to/policies.md", Serial, func() {
	It("shows kubectl's real output", func(ctx SpecContext) {
		policy, steps := readPage("Introduce a policy: Warn, then Deny")
		Expect(strings.Count(policy, "\n")).To(BeNumerically("<=", 10))
		Expect(steps).To(HaveLen(6))
		user := newShell(policy)
		subject := objectFrom("{apiVersion: example.org/v1beta1, kind: Widget, metadata: {name: w, namespace: default}, spec: {color: red, size: 3}}")
		expect.Created(ctx, masters, subject)
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(masters.Delete(ctx, policyFrom(policy)))).To(Succeed())
			Expect(masters.Delete(ctx, subject)).To(Succeed())
		})
		for _, step := range steps {
			Expect(user.run(ctx, step.command)).To(MatchRegexp(step.pattern()))
			if strings.Contains(step.command, "apply") || strings.Contains(step.command, "patch immutabilitypolicy") {
				takesEffect(ctx, "widgets")
			}
		}
	})
})
