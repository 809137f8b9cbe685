// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var long = strings.Repeat("x", 40)

// change gets the object, changes it and updates it.
func change(ctx context.Context, c client.Client, object *unstructured.Unstructured, with func(*unstructured.Unstructured)) error {
	GinkgoHelper()
	current := object.DeepCopy()
	Expect(masters.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	with(current)
	return c.Update(ctx, current)
}

// set writes a value, given as YAML, at a path; an empty text removes the field.
func set(path, value string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		GinkgoHelper()
		fields := strings.Split(path, ".")
		if value == "" {
			unstructured.RemoveNestedField(object.Object, fields...)
			return
		}
		var parsed map[string]any
		Expect(yaml.Unmarshal([]byte("v: "+value), &parsed)).To(Succeed())
		Expect(unstructured.SetNestedField(object.Object, parsed["v"], fields...)).To(Succeed())
	}
}

// beInvalid matches status 422 that has these causes among others, given as pairs of field and
// message part.
func beInvalid(fieldsAndTexts ...string) gomegatypes.GomegaMatcher {
	return expect.BeInvalid(ContainElements, fieldsAndTexts...)
}

// eventuallyEnforced waits until the webhook of a policy exists.
func eventuallyEnforced(ctx context.Context, name string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var policy admissionv1alpha1.ImmutabilityPolicy
		g.Expect(masters.Get(ctx, client.ObjectKey{Name: name}, &policy)).To(Succeed())
		condition := meta.FindStatusCondition(policy.Status.Conditions, admissionv1alpha1.ConditionEnforced)
		g.Expect(condition).NotTo(BeNil())
		g.Expect(condition.ObservedGeneration).To(Equal(policy.Generation))
		g.Expect(condition.Status).To(Equal(metav1.ConditionTrue), condition.Message)
	}).Should(Succeed(), name)
}

// policyFrom parses a policy of YAML.
func policyFrom(text string) *admissionv1alpha1.ImmutabilityPolicy {
	GinkgoHelper()
	policy := &admissionv1alpha1.ImmutabilityPolicy{}
	Expect(yaml.UnmarshalStrict([]byte(text), policy)).To(Succeed())
	return policy
}

// given creates a policy until the spec ends.
func given(ctx context.Context, text string) *admissionv1alpha1.ImmutabilityPolicy {
	GinkgoHelper()
	policy := policyFrom(text)
	enforce(ctx, policy)
	return policy
}

// enforce creates a policy until the spec ends, and waits until it is enforced.
func enforce(ctx context.Context, policy *admissionv1alpha1.ImmutabilityPolicy) {
	GinkgoHelper()
	expect.Created(ctx, masters, policy)
	DeferCleanup(func(ctx SpecContext) { Expect(client.IgnoreNotFound(masters.Delete(ctx, policy))).To(Succeed()) })
	eventuallyEnforced(ctx, policy.Name)
}

// auditLog returns what the hub's API server has recorded.
func auditLog() string {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(hub.Dir, "audit.log"))
	Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// warned collects the warnings of the API server.
type warned struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader is for rest.Config.
func (w *warned) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last time.
func (w *warned) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}

// listening returns a break-glass client whose warnings are collected.
func listening() (client.Client, *warned) {
	GinkgoHelper()
	config, heard := hub.Config(), &warned{}
	config.WarningHandler = heard
	return expect.Client(config, scheme), heard
}

// userWith returns a client of a user with exactly these rights.
func userWith(ctx context.Context, name string, rules ...rbacv1.PolicyRule) client.Client {
	GinkgoHelper()
	config, err := hub.ConfigFor(name)
	Expect(err).NotTo(HaveOccurred())
	config.WarningHandler = rest.NoWarnings{}
	expect.Created(ctx, masters, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	expect.Created(ctx, masters, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	return expect.Client(config, scheme)
}

func applyGatewayRole(ctx context.Context) {
	GinkgoHelper()
	manifest, err := os.ReadFile("../../support/fleet/gateway-rbac.yaml")
	Expect(err).NotTo(HaveOccurred())
	for _, object := range decode(manifest) {
		expect.Created(ctx, masters, object)
	}
}

// decode parses all objects of a YAML text.
func decode(manifest []byte) []*unstructured.Unstructured {
	GinkgoHelper()
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		Expect(err).NotTo(HaveOccurred())
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func widget(namespace, spec string) *unstructured.Unstructured {
	GinkgoHelper()
	return objectFrom(fmt.Sprintf("{apiVersion: example.org/v1beta1, kind: Widget, metadata: {generateName: widget-, namespace: %s}, spec: %s}", namespace, spec))
}
