// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

// ofTheHouse are Secrets as the hub, its API server and agents write them, in a user's namespace.
func ofTheHouse(namespace string) []*corev1.Secret {
	secret := func(name string, alter func(*corev1.Secret)) *corev1.Secret {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"token": []byte("t")}}
		alter(made)
		return made
	}
	return []*corev1.Secret{
		secret("member-credential", func(s *corev1.Secret) { s.Labels = map[string]string{clusterv1beta1.LabelMember: "m"} }),
		secret("account-token", func(s *corev1.Secret) {
			s.Labels = map[string]string{authenticationv1beta1.LabelManagedServiceAccount: "true"}
		}),
		secret("registration-values", func(s *corev1.Secret) { s.Type = registrationv1alpha1.SecretTypeRegistrationValues }),
		secret("joining", func(s *corev1.Secret) { s.Type = corev1.SecretTypeBootstrapToken }),
		secret("gateway-serving-ca", func(*corev1.Secret) {}),
	}
}

var _ = Describe("Objects that fleetgate manages for itself", func() {
	It("are in no placement: neither its Secrets, by name or with their namespace, nor its namespaces", func(ctx SpecContext) {
		shop(ctx, "ld-shop")
		create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ld-shop", Name: "of-the-shop"}})
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ld-shop", Name: "web"}}
		create(ctx, account)
		create(ctx, &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, ObjectMeta: metav1.ObjectMeta{
			Namespace: "ld-shop", Name: "web-token", Annotations: map[string]string{corev1.ServiceAccountNameKey: account.Name}}})
		for _, secret := range ofTheHouse("ld-shop") {
			create(ctx, secret)
		}
		joinAll(ctx, "ld", nil)
		place(ctx, "ld", "ld-shop", nil)
		Eventually(kindsOn).WithContext(ctx).WithArguments("ld-1", "ld").WithTimeout(soon).WithPolling(often).Should(ConsistOf(
			"Namespace/ld-shop", "ConfigMap/settings", "Service/web", "Deployment/web", "ServiceAccount/web", "Secret/of-the-shop"))

		By("selecting them by name")
		named := namespacedPlacement("ld-shop", "secrets", "ld")
		named.Spec.ResourceSelectors = []placementv1beta1.ResourceSelectorTerm{{Version: "v1", Kind: "Secret", Name: "of-the-shop"}, {Version: "v1", Kind: "Secret", Name: "web-token"}}
		for _, secret := range ofTheHouse("ld-shop") {
			named.Spec.ResourceSelectors = append(named.Spec.ResourceSelectors, placementv1beta1.ResourceSelectorTerm{Version: "v1", Kind: "Secret", Name: secret.Name})
		}
		create(ctx, named)
		Eventually(func() ([]placementv1beta1.ResourceIdentifier, error) {
			err := hub.Get(ctx, types.NamespacedName{Namespace: "ld-shop", Name: "secrets"}, named)
			return named.Status.SelectedResources, err
		}).WithTimeout(soon).WithPolling(often).Should(ConsistOf(HaveField("Name", "of-the-shop")))

		By("a namespace with the name of the gateway account's namespace on members")
		makeNamespace(ctx, authenticationv1beta1.AccountNamespace)
		placeIn(ctx, authenticationv1beta1.AccountNamespace, "settings", "ld")
		Eventually(namespacedSummary).WithContext(ctx).WithArguments(authenticationv1beta1.AccountNamespace, "settings").WithTimeout(soon).WithPolling(often).Should(
			Equal([]string{"Scheduled=False/InvalidResourceSelectors"}))
	})
})
