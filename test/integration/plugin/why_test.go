// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"fleetgate.io/fleetgate/test/support/build"
)

// breakage is a real failure and the diagnosis that why must give.
type breakage struct {
	name string
	// onMember is created on the first member first, then onHub on the hub; %s is the name.
	onMember, onHub string
	// policy is the placement's policy. If unset, the first member by name. With "-", no placement
	// is created.
	policy string
	// spec is appended to the placement's spec.
	spec string
	// prepare runs before anything is created.
	prepare func(ctx context.Context, name string)
	// then breaks the placement after it was created.
	then func(ctx context.Context, name string)
	// ask are the plugin's arguments. If unset, why NAME --member member-1.
	ask []string
	// object, reason and remedy must be in the first line.
	object, reason, remedy string
}

const settings = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: %[1]s}
data: {a: one}
`

const namespaceText = `
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {breakage: %[1]s}}
---`

func breakages() []breakage {
	return []breakage{
		{name: "quota", onMember: namespaceText + `
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: %[1]s}
spec: {hard: {count/configmaps: "0"}}
`, onHub: settings, object: "ConfigMap quota/settings", reason: "exceeded quota", remedy: "raise the ResourceQuota"},
		{name: "kindless", onHub: definition("kindlesses.example.com", "Kindless", "{size: {type: string}}") + object("Kindless"),
			object: "Kindless kindless/one", reason: "The member has no kind", remedy: "install the CustomResourceDefinition on member member-1"},
		{name: "schema", onMember: definition("schemas.example.com", "Schema", "{size: {type: integer}}"), onHub: definition("schemas.example.com", "Schema", "{size: {type: string}}") + object("Schema"),
			object: "Schema schema/one", reason: "size", remedy: "correct Schema schema/one on the hub"},
		{name: "policy", onMember: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {breakage: policy}}
    resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE, UPDATE]}]
  validations: [{expression: "object.metadata.name != 'settings'", message: "no settings here"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: policy}
spec: {policyName: policy, validationActions: [Deny]}
`, onHub: settings, then: func(ctx context.Context, name string) {
			// An admission policy takes effect with a delay. Objects after that are rejected.
			hub(ctx, "", "patch", "configmap", "settings", "--namespace="+name, "--type=merge", "--patch", `{"data":{"a":"two"}}`)
		}, object: "ConfigMap policy/settings", reason: "no settings here", remedy: "to satisfy the admission policy"},
		{name: "webhook", onMember: `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: webhook}
webhooks:
- name: broken.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: "https://127.0.0.1:1/broken"}
  namespaceSelector: {matchLabels: {breakage: webhook}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
`, onHub: settings, object: "ConfigMap webhook/settings", reason: "failed calling webhook", remedy: "fix the webhook named in the message"},
		{name: "refusal", prepare: refuseSettings, onHub: settings,
			object: "ConfigMap refusal/settings", reason: "no settings on Fridays", remedy: "to satisfy the admission policy"},
		// An object that existed before is taken over as far as its fields are mutable.
		{name: "immutable", onMember: namespaceText + "\n" + build.DeploymentText("immutable", "web", "other"), onHub: build.DeploymentText("immutable", "web", "web"),
			object: "Deployment immutable/web", reason: "immutable", remedy: "fleetgate.io/immutable-change=Recreate"},
		{name: "drift", spec: "strategy: {applyStrategy: {whenToApply: IfNotDrifted}}", onHub: settings, then: func(ctx context.Context, name string) {
			Eventually(says(ctx, "why", name)).Should(ContainSubstring("no problems found"))
			onMember(ctx, first, "", "patch", "configmap", "settings", "--namespace="+name, "--type=merge", "--patch", `{"data":{"a":"three"}}`)
		}, object: "ConfigMap drift/settings", reason: "/data/a", remedy: "revert the change on member member-1"},
		{name: "taken", spec: "strategy: {applyStrategy: {whenToTakeOver: Never}}", onMember: namespaceText + settings, onHub: settings,
			object: "Namespace taken", reason: "was on the member before", remedy: "set whenToTakeOver to a value other than Never"},
		{name: "terminating", onMember: namespaceText + strings.Replace(settings, "name: settings,", "name: held, finalizers: [example.com/held],", 1), onHub: settings,
			then: func(ctx context.Context, name string) {
				onMember(ctx, first, "", "delete", "namespace", name, "--wait=false")
			}, object: "terminating", reason: "being deleted on the member", remedy: "which finalizer blocks the deletion"},
		{name: "unschedulable", onHub: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: unschedulable}
spec:
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {nodeSelector: {disk: none}, containers: [{name: main, image: web}]}}
`, object: "Deployment unschedulable/web", reason: "nodes are available", remedy: "add nodes to member member-1"},
		{name: "security", onMember: strings.Replace(namespaceText, "breakage:", "pod-security.kubernetes.io/enforce: restricted, breakage:", 1), onHub: build.DeploymentText("security", "web", "web"),
			object: "Deployment security/web", reason: "violates PodSecurity", remedy: "change Deployment security/web to satisfy the admission policy"},
		{name: "nothing", policy: "-", onHub: `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: nothing}
spec: {resourceSelectors: [{group: "", version: v1, kind: Namespace, name: no-such-namespace}], policy: {placementType: PickAll}}
`, ask: []string{"why", "nothing"}, object: "placement nothing", reason: "resourceSelectors match nothing", remedy: "create the resources that spec.resourceSelectors of placement nothing select"},
		{name: "override", onHub: settings + `---
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceOverride
metadata: {name: wrong, namespace: override}
spec:
  placement: {name: override}
  resourceSelectors: [{group: "", version: v1, kind: ConfigMap, name: settings}]
  policy: {overrideRules: [{clusterSelector: {clusterSelectorTerms: []}, jsonPatchOverrides: [{op: remove, path: /data/none}]}]}
`, object: "placement override", reason: "override failed", remedy: "correct the override"},
		{name: "paused", onHub: settings, then: func(ctx context.Context, name string) {
			hub(ctx, "", "annotate", "clusterresourceplacement", name, "fleetgate.io/paused=true")
		}, object: "placement paused", reason: "is paused", remedy: "kubectl annotate clusterresourceplacement paused fleetgate.io/paused-"},
		{name: "external", spec: "strategy: {type: External}", onHub: settings,
			object: "placement external", reason: "the strategy is External", remedy: "create a ClusterStagedUpdateRun"},
		{name: "other", ask: []string{"why", "other", "--member", second}, onHub: settings,
			object: "placement other on member member-2", reason: "clusterNames does not contain it", remedy: "add the member to spec.policy.clusterNames"},
		{name: "label", policy: "{placementType: PickAll, affinity: {clusterAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {clusterSelectorTerms: [{labelSelector: {matchLabels: {moon: full}}}]}}}}",
			object: "placement label on member member-1", reason: "does not match", remedy: "label the member to match the policy"},
		{name: "tainted", policy: "{placementType: PickAll}", ask: []string{"why", "tainted", "--member", second},
			object: "placement tainted on member member-2", reason: "taint broken:NoSchedule is not tolerated", remedy: "kubectl fleetgate taint member-2 KEY-"},
		{name: "toofew", policy: "{placementType: PickN, numberOfClusters: 5}", ask: []string{"why", "toofew"},
			object: "placement toofew", reason: "could not find all", remedy: "kubectl fleetgate simulate toofew"},
		{name: "foreign", policy: "-", ask: []string{"why", "configmap/kube-root-ca.crt", "-n", "default", "--member", first},
			object: "configmap default/kube-root-ca.crt on member member-1", reason: "no placement applies this object", remedy: "kubectl fleetgate tree"},
		{name: "balancer", onHub: `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: balancer}
spec: {type: LoadBalancer, ports: [{port: 80}]}
`, object: "Service balancer/web", reason: "not available", remedy: "kubectl fleetgate get service/web -n balancer --member member-1"},
		{name: "toolong", policy: "-", onHub: `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: a-name-that-has-more-than-the-fifty-characters-that-fit-here}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}}
`, ask: []string{"why", "member/a-name-that-has-more-than-the-fifty-characters-that-fit-here"},
			object: "member a-name", reason: "50", remedy: "shorter name"},
		{name: "agentless", policy: "-", onHub: `
apiVersion: cluster.kubernetes-fleet.io/v1beta1
kind: MemberCluster
metadata: {name: agentless}
spec: {identity: {kind: User, apiGroup: rbac.authorization.k8s.io, name: someone}}
`, ask: []string{"why", "member/agentless"}, object: "member agentless", reason: "no agent has reported", remedy: "kubectl fleetgate join agentless"},
		{name: "waiting", policy: "-", onHub: namespaceText + `
apiVersion: fleet.cattle.io/v1alpha1
kind: Cluster
metadata: {name: waiting, namespace: clusters}
spec: {clientID: nobody}
`, ask: []string{"why", "member/waiting"}, object: "member waiting", reason: "in namespace clusters is waiting for an agent to register", remedy: "kubectl fleetgate join waiting"},
	}
}

// definition returns a CRD of a namespaced kind with a schema of spec.
func definition(name, kind, properties string) string {
	plural, group, _ := strings.Cut(name, ".")
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s}
spec:
  group: %s
  scope: Namespaced
  names: {kind: %s, plural: %s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: %s}}}}}
---`, name, group, kind, plural, properties)
}

func object(kind string) string {
	return fmt.Sprintf("\napiVersion: example.com/v1\nkind: %s\nmetadata: {name: one, namespace: %s}\nspec: {size: large}\n", kind, strings.ToLower(kind))
}

// refuseSettings registers a webhook on the first member that rejects the ConfigMaps of a
// namespace.
func refuseSettings(ctx context.Context, name string) {
	GinkgoHelper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
			http.Error(w, "this is no review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "no settings on Fridays"}}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // The API server reports a response that it did not get.
	}))
	DeferCleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	onMember(ctx, first, fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s}
webhooks:
- name: fridays.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  namespaceSelector: {matchLabels: {breakage: %[1]s}}
  rules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
`, name, server.URL, base64.StdEncoding.EncodeToString(ca)), "apply", "--filename=-")
}

// looking matches plugin commands that change nothing and have no placeholder.
var looking = regexp.MustCompile(`kubectl fleetgate (get|logs|tree|diff|why|members|simulate|run list|diagnose)( [-a-z0-9./=]+)*`)

// make causes the breakage.
func (b *breakage) make(ctx context.Context) {
	GinkgoHelper()
	text := func(of string) string {
		if strings.Contains(of, "%[1]s") {
			return fmt.Sprintf(of, b.name)
		}
		return of
	}
	if b.prepare != nil {
		b.prepare(ctx, b.name)
	}
	if b.onMember != "" {
		onMember(ctx, first, text(b.onMember), "apply", "--filename=-")
	}
	if b.policy == "-" {
		apply(ctx, text(b.onHub))
		return
	}
	policy := b.policy
	if policy == "" {
		policy = "{placementType: PickFixed, clusterNames: [" + first + "]}"
	}
	apply(ctx, text(namespaceText)+"\n"+text(b.onHub))
	apply(ctx, fmt.Sprintf(`
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ClusterResourcePlacement
metadata: {name: %[1]s}
spec:
  resourceSelectors: [{group: "", version: v1, kind: Namespace, name: %[1]s}]
  policy: %[2]s
  %[3]s
`, b.name, policy, b.spec))
}

// apply retries on the hub until it succeeds, because the hub serves a new kind with a delay.
func apply(ctx context.Context, text string) {
	GinkgoHelper()
	if strings.TrimSpace(text) == "" {
		return
	}
	Eventually(func() error {
		_, err := running.Kubectl(ctx, running.HubKubeconfig(), text, "apply", "--filename=-")
		return err
	}).Should(Succeed())
}

var _ = Describe("kubectl fleetgate why for real failures", Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx SpecContext) {
		onMember(ctx, first, allowed, "apply", "--filename=-")
		plugin(ctx, "taint", second, "broken:NoSchedule")
		DeferCleanup(func(ctx SpecContext) { plugin(ctx, "taint", second, "broken-") })
		// Break all at once: they are independent, and each takes time.
		for _, b := range breakages() {
			b.make(ctx)
		}
		for _, b := range breakages() {
			if b.then != nil {
				b.then(ctx, b.name)
			}
		}
	})

	for _, b := range breakages() {
		It("names object, member and remedy in its first line for "+b.name, func(ctx SpecContext) {
			ask := b.ask
			if ask == nil {
				ask = []string{"why", b.name, "--member", first}
			}
			firstLine := func() string {
				out, code, stderr := tries(ctx, ask...)
				line, _, _ := strings.Cut(out, "\n")
				return fmt.Sprintf("%d %s%s", code, line, stderr)
			}
			Eventually(firstLine).Should(And(HavePrefix("2 "), ContainSubstring(b.object), ContainSubstring(b.reason), ContainSubstring("Remedy: "), ContainSubstring(b.remedy)))
			if b.ask == nil {
				Expect(firstLine()).To(ContainSubstring(first))
			}
			line := firstLine()
			for _, at := range looking.FindAllStringIndex(line, -1) {
				command, rest := line[at[0]:at[1]], line[at[1]:]
				if regexp.MustCompile(`^ [A-Z]`).MatchString(rest) {
					continue // The reader has to fill in the placeholder.
				}
				_, code, stderr := tries(ctx, strings.Fields(strings.TrimPrefix(command, "kubectl fleetgate "))...)
				Expect(code).NotTo(Equal(1), "%s: %s", command, stderr)
			}
		})
	}

	It("shows problems in the tree and in the diff", func(ctx SpecContext) {
		Eventually(says(ctx, "tree", "drift", "--not-ready")).Should(And(ContainSubstring("placement drift: 0 of 1 members ready"), ContainSubstring("ConfigMap drift/settings")))
		out, code, _ := tries(ctx, "diff", "drift")
		Expect(code).To(Equal(2))
		Expect(out).To(And(ContainSubstring("--- hub: ConfigMap drift/settings\n+++ member member-1\n@@ /data/a\n"), ContainSubstring("-one\n"), ContainSubstring("+three\n")))
		Expect(plugin(ctx, "members", first)).To(MatchRegexp(`member-1 +True +Yes .* [1-9][0-9]* +-`))
		Expect(plugin(ctx, "__complete", "why", "")).To(And(ContainSubstring("drift\n"), ContainSubstring("quota\n")), "placement names are completed")
	})

	It("prints the same diagnosis as JSON and YAML", func(ctx SpecContext) {
		asked := func(into any, want int, args ...string) {
			GinkgoHelper()
			out, code, stderr := tries(ctx, append(args, "--output=json")...)
			Expect(code).To(Equal(want), stderr)
			Expect(json.Unmarshal([]byte(out), into)).To(Succeed(), out)
		}
		var said struct {
			Healthy bool
			Answers []struct{ Object, Member, Remedy string }
		}
		asked(&said, 2, "why", "drift", "--member", first)
		Expect(said.Healthy).To(BeFalse())
		Expect(said.Answers).To(ContainElement(And(HaveField("Object", "ConfigMap drift/settings"), HaveField("Member", first), HaveField("Remedy", ContainSubstring("revert the change")))))
		asked(&said, 0, "why", "configmap/settings", "-n", "other", "--member", first)
		Expect(said.Healthy).To(BeTrue())
		var drawn struct {
			Kind, Name string
			Children   []struct{ Kind, Name, State string }
		}
		asked(&drawn, 0, "tree", "drift")
		Expect(drawn.Kind + " " + drawn.Name).To(Equal("placement drift"))
		Expect(drawn.Children).To(ConsistOf(And(HaveField("Kind", "member"), HaveField("Name", first), HaveField("State", Not(BeEmpty())))))
		var differs struct {
			Objects []struct {
				Member string
				Drift  bool
				Fields []struct{ Path, ValueInMember string }
			}
		}
		asked(&differs, 2, "diff", "drift")
		Expect(differs.Objects).To(ConsistOf(And(HaveField("Member", first), HaveField("Drift", true), HaveField("Fields", ContainElement(And(HaveField("Path", "/data/a"), HaveField("ValueInMember", "three")))))))
		var runs struct{ Kind string }
		asked(&runs, 0, "run", "list")
		Expect(runs.Kind).To(Equal("List"))
	})

	It("names the source of an object and its last writer", func(ctx SpecContext) {
		Eventually(says(ctx, "why", "configmap/settings", "-n", "other", "--member", first)).Should(And(
			HavePrefix("ConfigMap other/settings on member member-1: no problems found"),
			ContainSubstring("placed by other, snapshot 0, in Work fleet-member-member-1/other-work"), ContainSubstring("last written by ")))
	})

	It("reports an expired registration token", func(ctx SpecContext) {
		hub(ctx, "", "delete", "clusterregistrationtokens", "--all", "--namespace=clusters")
		plugin(ctx, "token", "short", "--ttl=10s")
		Expect(says(ctx, "why", "member/late")()).To(ContainSubstring(`no member "late"`), "a valid token is not a problem")
		Eventually(says(ctx, "why", "member/late")).Should(HavePrefix(
			"member late: no cluster with this name has registered, and no registration token is valid; earlier tokens have expired or are used up. Remedy: create a token: kubectl fleetgate token"))
	})

	It("accepts a short resource name in the context's namespace", func(ctx SpecContext) {
		Eventually(says(ctx, "why", "cm/settings", "-n", "other", "--member", first)).Should(HavePrefix("ConfigMap other/settings on member member-1: no problems found"))
		out, code, _ := tries(ctx, "why", "cm/settings", "--member", first)
		Expect(code).To(Equal(2))
		Expect(out).To(And(HavePrefix("cm default/settings on member member-1: no placement applies this object"),
			MatchRegexp(`\n  (\S+) applies one in namespace \S+: select it with -n \S+\n`), ContainSubstring("the object does not exist on the member")))
		out, _, _ = tries(ctx, "why", "cm/kube-root-ca.crt", "--member", first)
		Expect(out).To(And(ContainSubstring("no placement applies this object"), ContainSubstring("last written by ")))
		_, code, stderr := tries(ctx, "why", "cm/settings")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("cm/settings is a resource on a member: set --member"))
		_, code, stderr = tries(ctx, "why", "depoly/web", "--member", first)
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`neither member "member-1" nor the hub has a kind "depoly"`))
	})

	It("queries the member about an applied object that is not available", func(ctx SpecContext) {
		onMember(ctx, first, allowed, "apply", "--filename=-")
		Eventually(says(ctx, "why", "unschedulable", "--member", first)).Should(And(
			HavePrefix("Deployment unschedulable/web on member member-1: not available: "),
			MatchRegexp(`\n  on the member: Pod web-\S+: Unschedulable: .*nodes are available`), MatchRegexp(`\n  event of Pod unschedulable/web-\S+: FailedScheduling: `)))
	})

	It("reports a member without a tunnel as disconnected", func(ctx SpecContext) {
		agent := running.Members[1].Agent
		Expect(agent.Stop(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(agent.Start(ctx)).To(Succeed()) })
		Eventually(says(ctx, "why", "member/"+second)).Should(And(HavePrefix("member member-2: the member is unreachable through the hub"), ContainSubstring("Remedy: ")))
		Eventually(says(ctx, "members", "--not-ready")).Should(MatchRegexp(`member-2 +True +No `))
	})
})
