// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/expect"
)

const widgetPolicy = `
apiVersion: admission.fleetgate.io/v1alpha1
kind: ImmutabilityPolicy
metadata: {name: widgets}
spec:
  enforcement: Warn
  match: {resourceRules: [{apiGroups: [example.org], apiVersions: ["*"], resources: [widgets], operations: [CREATE, UPDATE]}]}
  fields:
  - {path: spec.color, mode: Immutable}
  validations:
  - {path: spec.size, expression: "object.spec.size <= 10", message: must be 10 at most}
`

var _ = Describe("A policy for a custom resource", Serial, func() {
	It("warns, reports in its status that it is ready, and enforces once the action is Deny", func(ctx SpecContext) {
		policy := given(ctx, widgetPolicy)
		namespace := expect.FreshNamespace(ctx, masters)
		listener, heard := listening()
		subject := widget(namespace, "{color: red, size: 3}")
		expect.Created(ctx, masters, subject)
		Eventually(func() []string {
			Expect(change(ctx, listener, subject, set("spec.color", "blue"))).To(Succeed())
			Expect(change(ctx, masters, subject, set("spec.color", "red"))).To(Succeed())
			return heard.take()
		}).Should(ContainElement("policy widgets: spec.color: field is immutable"))

		By("setting the action to Deny")
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		Expect(policy.Status.MatchedResources).To(BeEquivalentTo(1))
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementDeny
		Expect(masters.Update(ctx, policy)).To(Succeed())
		attempt := 0
		Eventually(func() error {
			attempt++ // An attempt that the hub still allowed has changed the color.
			return change(ctx, masters, subject, func(o *unstructured.Unstructured) {
				set("spec.color", fmt.Sprintf("green-%d", attempt))(o)
				set("spec.size", "11")(o)
			})
		}).Should(beInvalid("spec.color", "field is immutable", "spec.size", "must be 10 at most"))
		Expect(change(ctx, masters, subject, set("spec.size", "4"))).To(Succeed())
	})

	It("reports a field that no schema has and a resource that the hub does not serve", func(ctx SpecContext) {
		says := func(policy *admissionv1alpha1.ImmutabilityPolicy, condition string, status metav1.ConditionStatus, reason, part string) {
			GinkgoHelper()
			Eventually(func() ([]metav1.Condition, error) {
				err := masters.Get(ctx, client.ObjectKeyFromObject(policy), policy)
				return policy.Status.Conditions, err
			}).Should(ContainElement(And(HaveField("Type", condition), HaveField("Status", status), HaveField("Reason", reason),
				HaveField("Message", ContainSubstring(part)))))
		}
		policy := policyFrom(widgetPolicy)
		policy.Name = "misspelt"
		policy.Spec.Fields[0].Path = "spec.colour"
		other := *policy.Spec.Match.ResourceRules[0].DeepCopy()
		other.APIGroups = []string{"exmaple.org"}
		policy.Spec.Match.ResourceRules = append(policy.Spec.Match.ResourceRules, other)
		expect.Created(ctx, masters, policy)
		says(policy, admissionv1alpha1.ConditionCompiled, metav1.ConditionTrue, admissionv1alpha1.ReasonExpressionWarnings, "undefined field 'colour'")
		says(policy, admissionv1alpha1.ConditionEnforced, metav1.ConditionTrue, admissionv1alpha1.ReasonEnforced, "the hub has no resource widgets.exmaple.org in *")

		By("matching no resource of the hub")
		policy.Spec.Match.ResourceRules = policy.Spec.Match.ResourceRules[1:]
		Expect(masters.Update(ctx, policy)).To(Succeed())
		says(policy, admissionv1alpha1.ConditionEnforced, metav1.ConditionFalse, admissionv1alpha1.ReasonNothingMatched, "correct groups, versions and plurals")
		raw, err := json.Marshal(policy.Status)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(raw)).To(ContainSubstring(`"matchedResources":0`))
	})

	It("writes an audit annotation and allows the request with action Audit", func(ctx SpecContext) {
		policy := policyFrom(widgetPolicy)
		policy.Name, policy.Spec.Enforcement = "audited", admissionv1alpha1.EnforcementAudit
		enforce(ctx, policy)
		listener, heard := listening()
		Eventually(func() string {
			Expect(listener.Create(ctx, widget("default", "{size: 12}"))).To(Succeed())
			return auditLog()
		}).Should(ContainSubstring(`"audited.policies.admission.fleetgate.io/violation":"spec.size: must be 10 at most"`))
		Expect(heard.take()).To(BeEmpty())
	})

	It("is rejected with all errors when it does not compile", func(ctx SpecContext) {
		policy := policyFrom(widgetPolicy)
		policy.Spec.Validations[0].Expression = "object.spec.size <"
		policy.Spec.Match.ResourceRules[0].Resources = []string{"*"}
		Expect(masters.Create(ctx, policy)).To(beInvalid(
			"spec.match.resourceRules[0].resources[0]", "named one by one",
			"spec.validations[0]", "Syntax error"))
	})

	It("is rejected when it always exceeds the cost limit, and stopped when an object makes it exceed the limit", func(ctx SpecContext) {
		loops := func(depth int) string {
			expression := "object.spec.color != ''"
			for i := range depth {
				expression = fmt.Sprintf("object.spec.l.all(i%d, %s)", i, expression)
			}
			return expression
		}
		policy := policyFrom(widgetPolicy)
		policy.Name, policy.Spec.Enforcement = "costly", admissionv1alpha1.EnforcementDeny
		policy.Spec.Fields, policy.Spec.Validations[0].Expression = nil, loops(8)
		Expect(masters.Create(ctx, policy)).To(beInvalid("spec.validations[0]", "nest fewer loops"))

		policy.Spec.Validations[0].Expression = loops(3)
		enforce(ctx, policy)
		Eventually(func() error { return masters.Create(ctx, widget("default", "{color: '', l: [1]}"), client.DryRunAll) }).
			Should(beInvalid("spec.size", "must be 10 at most"))
		large := "{color: red, l: [" + strings.Repeat("1, ", 999) + "1]}"
		Eventually(func() string {
			Expect(masters.Create(ctx, widget("default", large), client.DryRunAll)).To(Succeed(), "it fails open")
			return auditLog()
		}).Should(MatchRegexp(`"costly.policies.admission.fleetgate.io/error":"[^"]*cost`))

		closed := policy.DeepCopy()
		closed.ObjectMeta = metav1.ObjectMeta{Name: "costly-doors"}
		closed.Spec.FailurePolicy = admissionv1alpha1.FailurePolicyFail
		closed.Spec.Match.ResourceRules[0].APIGroups, closed.Spec.Match.ResourceRules[0].Resources = []string{failClosedGroup}, []string{"doors"}
		enforce(ctx, closed)
		door := widget("default", large)
		door.SetAPIVersion(failClosedGroup + "/v1beta1")
		door.SetKind("Door")
		Eventually(func() error { return masters.Create(ctx, door.DeepCopy(), client.DryRunAll) }).
			Should(MatchError(And(ContainSubstring("policy costly-doors cannot be evaluated"), ContainSubstring("cost"))))
	})

	It("cannot match resources that the hub depends on", func(ctx SpecContext) {
		for group, resource := range map[string]string{"coordination.k8s.io": "leases", "": "namespaces", "admissionregistration.k8s.io": "validatingwebhookconfigurations"} {
			policy := policyFrom(widgetPolicy)
			policy.Spec.Match.ResourceRules[0].APIGroups = []string{group}
			policy.Spec.Match.ResourceRules[0].Resources = []string{resource}
			Expect(masters.Create(ctx, policy)).To(Satisfy(apierrors.IsInvalid), resource)
		}
	})

	It("cannot look up objects that its author cannot read", func(ctx SpecContext) {
		text := widgetPolicy + `
  lookups:
  - {name: secret, get: {apiVersion: v1, kind: Secret, nameFrom: "'x'"}}
`
		write := rbacv1.PolicyRule{APIGroups: []string{admissionv1alpha1.GroupName}, Resources: []string{"immutabilitypolicies"}, Verbs: []string{"create", "delete"}}
		author := userWith(ctx, "author", write)
		Eventually(func() error { return author.Create(ctx, policyFrom(text), client.DryRunAll) }).
			Should(beInvalid("spec.lookups[0]", "you cannot get secrets"))
		reader := userWith(ctx, "reader", write, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
		Eventually(func() error { return reader.Create(ctx, policyFrom(text), client.DryRunAll) }).Should(Succeed())
	})

	It("can read the keys of a Secret, but not the values", func(ctx SpecContext) {
		namespace := expect.FreshNamespace(ctx, masters)
		expect.Created(ctx, masters, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"}, Data: map[string][]byte{"key": []byte("c2VjcmV0")}})
		given(ctx, `
apiVersion: admission.fleetgate.io/v1alpha1
kind: ImmutabilityPolicy
metadata: {name: peeking}
spec:
  match: {resourceRules: [{apiGroups: [example.org], apiVersions: ["*"], resources: [widgets], operations: [CREATE]}]}
  lookups:
  - {name: secret, get: {apiVersion: v1, kind: Secret, nameFrom: "'x'"}}
  validations:
  - {expression: "!('key' in params.lookups.secret.data)", messageExpression: "'found <' + string(params.lookups.secret.data.key) + '>'"}
`)
		Eventually(func() error { return masters.Create(ctx, widget(namespace, "{}"), client.DryRunAll) }).Should(beInvalid("spec", "found <>"))
	})

	It("exempts a user with the verb bypass, but not a user with all verbs on the resource", func(ctx SpecContext) {
		policy := given(ctx, widgetPolicy)
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementDeny
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementDeny
		Expect(masters.Update(ctx, policy)).To(Succeed())
		widgets := rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, Verbs: []string{"create"}}
		Eventually(func() error { return masters.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll) }).Should(Satisfy(apierrors.IsInvalid))
		holder := userWith(ctx, "holder", widgets, rbacv1.PolicyRule{
			APIGroups: []string{admissionv1alpha1.GroupName}, Resources: []string{"immutabilitypolicies"}, ResourceNames: []string{"widgets"}, Verbs: []string{immutability.BypassVerb},
		})
		Eventually(func() error { return holder.Create(ctx, widget("default", "{size: 11}")) }).Should(Succeed())
		Eventually(auditLog).Should(ContainSubstring(`"widgets.policies.admission.fleetgate.io/bypassed":"spec.size: must be 10 at most"`))
		almighty := userWith(ctx, "almighty", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
		Eventually(func() error { return almighty.Create(ctx, widget("default", "{size: 11}")) }).Should(Satisfy(apierrors.IsInvalid))
	})

	It("reports in its status the fields that the schema does not have", func(ctx SpecContext) {
		policy := given(ctx, `
apiVersion: admission.fleetgate.io/v1alpha1
kind: ImmutabilityPolicy
metadata: {name: mistyped}
spec:
  enforcement: Audit
  match: {resourceRules: [{apiGroups: [infrastructure.cluster.x-k8s.io], apiVersions: ["*"], resources: [azureclusteridentities], operations: [UPDATE]}]}
  fields:
  - {path: spec.tpye, mode: Immutable}
  - {path: spec.type, mode: Immutable}
  validations:
  - {expression: "object.spec.clientID > 5"}
`)
		Eventually(func(g Gomega) {
			g.Expect(masters.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
			g.Expect(policy.Status.ExpressionWarnings).To(ConsistOf(
				And(HaveField("FieldRef", "spec.fields[0].path"), HaveField("Warning", ContainSubstring("undefined field 'tpye'"))),
				And(HaveField("FieldRef", "spec.validations[0].expression"), HaveField("Warning", ContainSubstring("no matching overload")))))
		}).Should(Succeed())
	})

	It("creates a ValidatingAdmissionPolicy with enforcement Native, and deletes it with itself", func(ctx SpecContext) {
		policy := given(ctx, widgetPolicy)
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(policy), policy)).To(Succeed())
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementNative
		Expect(masters.Update(ctx, policy)).To(Succeed())
		front.down.Store(true)
		DeferCleanup(func() { front.down.Store(false) })
		Eventually(func() error { return masters.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll) }).
			Should(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy"), ContainSubstring("spec.size: must be 10 at most"))))
		By("writing with the verb bypass")
		holder := userWith(ctx, "native-holder",
			rbacv1.PolicyRule{APIGroups: []string{"example.org"}, Resources: []string{"widgets"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{admissionv1alpha1.GroupName}, Resources: []string{"immutabilitypolicies"}, Verbs: []string{immutability.BypassVerb}})
		Eventually(func() error { return holder.Create(ctx, widget("default", "{size: 11}")) }).Should(Succeed())

		front.down.Store(false)
		Expect(masters.Delete(ctx, policy)).To(Succeed())
		Eventually(func() error {
			return masters.Get(ctx, client.ObjectKey{Name: immutability.ExportName("widgets")}, &admissionregistrationv1.ValidatingAdmissionPolicy{})
		}).Should(Satisfy(apierrors.IsNotFound))
		Eventually(func() error { return masters.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll) }).Should(Succeed())
	})

	It("is enforced by the gateway with enforcement Native when the name is taken or the gateway lacks the right", func(ctx SpecContext) {
		foreign, binding, err := immutability.Export(policyFrom(widgetPolicy))
		Expect(err).NotTo(HaveOccurred())
		foreign.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "true", Message: "somebody else's"}}
		expect.Created(ctx, masters, foreign)
		DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(masters.Delete(ctx, foreign))).To(Succeed()) })
		policy := policyFrom(widgetPolicy)
		policy.Spec.Enforcement = admissionv1alpha1.EnforcementNative
		expect.Created(ctx, masters, policy)
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, policy)).To(Succeed()) })
		enforced := func() string {
			current := &admissionv1alpha1.ImmutabilityPolicy{}
			if err := masters.Get(ctx, client.ObjectKeyFromObject(policy), current); err != nil {
				return err.Error()
			}
			c := meta.FindStatusCondition(current.Status.Conditions, admissionv1alpha1.ConditionEnforced)
			if c == nil {
				return ""
			}
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
		tooLarge := func() error { return masters.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll) }
		Eventually(enforced).Should(And(HavePrefix("True NotExportable"), ContainSubstring("rename the policy")))
		Eventually(tooLarge).Should(MatchError(ContainSubstring("admission webhook")))
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
		Expect(foreign.Spec.Validations).To(ConsistOf(HaveField("Message", "somebody else's")))
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(binding), binding)).To(Satisfy(apierrors.IsNotFound))

		By("revoking the gateway's right to policies")
		right := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fleetgate-native-policies"}}
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(right), right)).To(Succeed())
		Expect(masters.Delete(ctx, right)).To(Succeed())
		right.ResourceVersion, right.UID = "", ""
		DeferCleanup(func(ctx SpecContext) { Expect(masters.Create(ctx, right)).To(Succeed()) })
		Expect(masters.Delete(ctx, foreign)).To(Succeed())
		// Touch the policy, or wait until the next periodic check.
		touch := func() (string, error) {
			err := masters.Patch(ctx, policy.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"`+time.Now().Format(time.StampNano)+`"}}}`)))
			return enforced(), err
		}
		Eventually(touch).WithPolling(time.Second).Should(And(HavePrefix("True NotExportable"), ContainSubstring("rbac.nativePolicies")))
		Eventually(tooLarge).Should(MatchError(ContainSubstring("admission webhook")))
	})

	It("fails open, or closed where an administrator allows it, and does not block the hub", func(ctx SpecContext) {
		open := policyFrom(widgetPolicy)
		open.Spec.Enforcement, open.Spec.FailurePolicy = admissionv1alpha1.EnforcementDeny, admissionv1alpha1.FailurePolicyFail
		closed := open.DeepCopy()
		closed.Name = "doors"
		closed.Spec.Match.ResourceRules[0].APIGroups, closed.Spec.Match.ResourceRules[0].Resources = []string{failClosedGroup}, []string{"doors"}
		for _, policy := range []*admissionv1alpha1.ImmutabilityPolicy{open, closed} {
			expect.Created(ctx, masters, policy)
			DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, policy)).To(Succeed()) })
			eventuallyEnforced(ctx, policy.Name)
		}
		Expect(masters.Get(ctx, client.ObjectKeyFromObject(open), open)).To(Succeed())
		Expect(meta.FindStatusCondition(open.Status.Conditions, admissionv1alpha1.ConditionEnforced).Reason).To(Equal(admissionv1alpha1.ReasonFailNotAllowed))
		Eventually(func() error { return masters.Create(ctx, widget("default", "{size: 11}"), client.DryRunAll) }).Should(Satisfy(apierrors.IsInvalid))

		door, large := widget("default", "{size: 1}"), widget("default", "{size: 11}")
		for _, d := range []*unstructured.Unstructured{door, large} {
			d.SetAPIVersion(failClosedGroup + "/v1beta1")
			d.SetKind("Door")
		}
		Eventually(func() error { return masters.Create(ctx, large.DeepCopy(), client.DryRunAll) }).Should(Satisfy(apierrors.IsInvalid))

		front.down.Store(true)
		DeferCleanup(func() { front.down.Store(false) })
		Expect(masters.Create(ctx, widget("default", "{size: 11}"))).To(Succeed())
		Expect(masters.Create(ctx, door.DeepCopy())).To(MatchError(ContainSubstring("failed calling webhook")))
		Expect(masters.Create(ctx, policyFrom(widgetPolicy))).To(MatchError(ContainSubstring("failed calling webhook")))
		namespace := expect.FreshNamespace(ctx, masters)
		expect.Created(ctx, masters, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "l"}})
		expect.Created(ctx, masters, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}})
		Expect(masters.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
		Eventually(func() error { return masters.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{}) }).Should(Satisfy(apierrors.IsNotFound))

		By("writing with the verb bypass")
		operator := userWith(ctx, "operator",
			rbacv1.PolicyRule{APIGroups: []string{failClosedGroup}, Resources: []string{"doors"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{admissionv1alpha1.GroupName}, Resources: []string{"immutabilitypolicies"}, Verbs: []string{immutability.BypassVerb}})
		Eventually(func() error { return operator.Create(ctx, door.DeepCopy()) }).Should(Succeed())
		Eventually(auditLog).Should(MatchRegexp(`"failed-open\.validating\.webhook\.admission\.k8s\.io/[^"]+":"doors\.bypassed-policies\.admission\.fleetgate\.io"`))

		By("starting the gateway again")
		front.down.Store(false)
		Expect(masters.Create(ctx, door.DeepCopy())).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(operator.Create(ctx, large.DeepCopy())).To(Succeed())
			g.Expect(auditLog()).To(ContainSubstring(`"doors.bypassed-policies.admission.fleetgate.io/bypassed":"spec.size: must be 10 at most"`))
		}).Should(Succeed())
	})
})
