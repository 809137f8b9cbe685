// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/serviceaccount/hub/credentials"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	memberName      = "m1"
	memberNamespace = clusterv1beta1.MemberNamespacePrefix + memberName
)

func selecting(version, kind, name string) placementv1beta1.PlacementSpec {
	return placementv1beta1.PlacementSpec{ResourceSelectors: []placementv1beta1.ResourceSelectorTerm{{Version: version, Kind: kind, Name: name}}}
}

func clusterPlacement(spec placementv1beta1.PlacementSpec) *placementv1beta1.ClusterResourcePlacement {
	placement := &placementv1beta1.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "placement-"}}
	placement.Spec = spec
	return placement
}

func resourcePlacement(spec placementv1beta1.PlacementSpec) *placementv1beta1.ResourcePlacement {
	return &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{GenerateName: "placement-", Namespace: "default"}, Spec: spec}
}

// change gets the object, changes it and updates it.
func change[T client.Object](ctx context.Context, c client.Client, object T, with func(T)) error {
	GinkgoHelper()
	current, ok := object.DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	Expect(masters.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	with(current)
	return c.Update(ctx, current)
}

// beInvalid matches status 422 with these causes in order, given as pairs of field and message
// part.
func beInvalid(fieldsAndTexts ...string) gomegatypes.GomegaMatcher {
	return expect.BeInvalid(HaveExactElements, fieldsAndTexts...)
}

// leftovers were stored before the gateway was installed.
var leftovers = struct{ withoutPolicy, withoutType, unknownKind, going, released *unstructured.Unstructured }{
	withoutPolicy: leftover("without-policy", "Namespace"),
	withoutType:   leftover("without-type", "Namespace"),
	unknownKind:   leftover("unknown-kind", "Vanished"),
	going:         leftover("going", "Vanished"),
	released:      leftover("released", "Vanished"),
}

func leftover(name, kind string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "placement.kubernetes-fleet.io/v1", "kind": "ClusterResourcePlacement",
		"metadata": map[string]any{"name": name, "finalizers": []any{"example.org/wait"}},
		"spec":     map[string]any{"resourceSelectors": []any{map[string]any{"group": "", "version": "v1", "kind": kind, "name": "x"}}},
	}}
}

func makeLeftovers(ctx context.Context) {
	GinkgoHelper()
	for _, object := range []*unstructured.Unstructured{leftovers.withoutPolicy, leftovers.withoutType, leftovers.unknownKind, leftovers.going, leftovers.released} {
		Expect(masters.Create(ctx, object.DeepCopy())).To(Succeed())
	}
	for _, object := range []*unstructured.Unstructured{leftovers.going, leftovers.released} {
		Expect(masters.Delete(ctx, object.DeepCopy())).To(Succeed())
	}
}

// prepareMember creates what joining creates: namespace, account, credential, rights.
func prepareMember(ctx context.Context) {
	GinkgoHelper()
	rules := append(enroll.HubRules(memberName), credentials.HubRules(memberName)...)
	objectMeta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: memberNamespace, Name: name} }
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: memberNamespace}},
		&corev1.ServiceAccount{ObjectMeta: objectMeta(clusterv1beta1.AgentAccount)},
		&corev1.ServiceAccount{ObjectMeta: objectMeta("other")},
		&corev1.Secret{ObjectMeta: objectMeta(clusterv1beta1.AgentCredentialSecret)},
		&corev1.Secret{ObjectMeta: objectMeta("unbound")},
		&rbacv1.Role{ObjectMeta: objectMeta("agent"), Rules: rules},
		&rbacv1.RoleBinding{
			ObjectMeta: objectMeta("agent"),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: memberNamespace, Name: clusterv1beta1.AgentAccount}},
		},
	} {
		Expect(gateway.client.Create(ctx, object)).To(Succeed(), "as the gateway: %T", object)
	}
}

// newMemberIdentity returns a client with a token that the gateway requested for the member's
// account.
func newMemberIdentity(ctx context.Context) client.Client {
	GinkgoHelper()
	request := tokenRequest(tokenLifetime, clusterv1beta1.AgentCredentialSecret)
	Expect(gateway.client.SubResource("token").Create(ctx, accountNamed(clusterv1beta1.AgentAccount), request)).To(Succeed())
	config := rest.AnonymousClientConfig(hub.Config())
	config.BearerToken = request.Status.Token
	return clientFor(config)
}

func accountNamed(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: memberNamespace, Name: name}}
}

func tokenRequest(lifetime time.Duration, boundTo string) *authenticationv1.TokenRequest {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(lifetime.Seconds()))}}
	if boundTo != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: boundTo}
	}
	return request
}

func requestToken(ctx context.Context, as client.Client, account string, lifetime time.Duration, boundTo string) error {
	return as.SubResource("token").Create(ctx, accountNamed(account), tokenRequest(lifetime, boundTo))
}

// tokenSecret returns a Secret that a member may write.
func tokenSecret(alter ...func(*corev1.Secret)) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: memberNamespace, GenerateName: "token-",
			Labels: map[string]string{authenticationv1beta1.LabelManagedServiceAccount: authenticationv1beta1.LabelManagedServiceAccountValue},
		},
		Data: map[string][]byte{authenticationv1beta1.SecretKeyToken: []byte("t"), authenticationv1beta1.SecretKeyCA: []byte("c")},
	}
	for _, change := range alter {
		change(secret)
	}
	return secret
}
