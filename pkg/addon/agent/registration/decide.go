// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"cmp"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// Keys of the Secrets, besides those of a certificate.
const (
	kubeconfigKey  = "kubeconfig"
	clusterNameKey = "cluster-name"
	agentNameKey   = "agent-name"
	tokenKey       = "token"
)

// registration is a credential that the agent of an add-on needs.
type registration struct {
	addOn  string
	signer string
	// secret is where the credential is stored on the member.
	secret  types.NamespacedName
	subject pkix.Name
}

// forHub reports whether the credential is for the hub's API server.
func (r registration) forHub() bool {
	return r.signer == certificatesv1.KubeAPIServerClientSignerName
}

func (r registration) equals(other registration) bool {
	return r.addOn == other.addOn && r.signer == other.signer && r.secret == other.secret && sameSubject(r.subject, other.subject)
}

// isHere reports whether the agent of an add-on runs on the cluster itself.
func isHere(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	host := addOn.Annotations[addonv1alpha1.HostingClusterAnnotation]
	return host == "" || host == addOn.Namespace
}

// registrationsOf are the credentials that an add-on asks for, one for each signer.
func registrationsOf(addOn *addonv1alpha1.ManagedClusterAddOn) []registration {
	if !isHere(addOn) {
		return nil
	}
	namespace := cmp.Or(addOn.Status.Namespace, addOn.Spec.InstallNamespace, addonv1alpha1.DefaultInstallNamespace)
	var all []registration
	for _, wanted := range addOn.Status.Registrations {
		r := registration{addOn: addOn.Name, signer: wanted.SignerName, subject: subjectOf(addOn, wanted)}
		r.secret = types.NamespacedName{Namespace: namespace, Name: addOn.Name + "-hub-kubeconfig"}
		if !r.forHub() {
			r.secret.Name = addOn.Name + "-" + strings.ReplaceAll(r.signer, "/", "-") + "-client-cert"
		}
		if !slices.ContainsFunc(all, func(other registration) bool { return other.secret == r.secret }) {
			all = append(all, r)
		}
	}
	return all
}

// subjectOf is the subject of a certificate. Managers expect these defaults.
func subjectOf(addOn *addonv1alpha1.ManagedClusterAddOn, wanted addonv1alpha1.RegistrationConfig) pkix.Name {
	group := clusterv1.UserPrefix + "cluster:" + addOn.Namespace + ":addon:" + addOn.Name
	subject := pkix.Name{
		CommonName:         cmp.Or(wanted.Subject.User, group+":agent:"+clusterv1.AgentName),
		Organization:       wanted.Subject.Groups,
		OrganizationalUnit: wanted.Subject.OrganizationUnits,
	}
	if wanted.SignerName == certificatesv1.KubeAPIServerClientSignerName && len(subject.Organization) == 0 {
		subject.Organization = []string{group}
	}
	return subject
}

// accountOf returns the UID of the account of which the add-on's agent gets tokens. It is empty until
// the hub has created the account.
func accountOf(addOn *addonv1alpha1.ManagedClusterAddOn) string {
	ready := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return ""
	}
	_, uid, _ := strings.Cut(ready.Message, "(UID: ")
	uid, _, _ = strings.Cut(uid, ")")
	return uid
}

// validity is how long a credential is valid.
type validity struct{ from, until time.Time }

// renewAt is when a credential is renewed: when 20 to 25 percent are left, at a time that differs
// between credentials.
func (v validity) renewAt(of types.NamespacedName) time.Time {
	spread := fnv.New32a()
	_, _ = spread.Write([]byte(of.String()))
	const least, more, steps = 0.20, 0.05, 1000
	left := least + more*float64(spread.Sum32()%steps)/steps
	return v.until.Add(-time.Duration(left * float64(v.until.Sub(v.from))))
}

// certificateIn returns the validity of the certificate in a Secret, or an error if that has none for
// the subject.
func certificateIn(data map[string][]byte, subject pkix.Name) (validity, error) {
	if err := untrusted.CheckKeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err != nil {
		return validity{}, err
	}
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return validity{}, err
	}
	if !sameSubject(pair.Leaf.Subject, subject) {
		return validity{}, fmt.Errorf("its subject is %s", pair.Leaf.Subject)
	}
	return validity{from: pair.Leaf.NotBefore, until: pair.Leaf.NotAfter}, nil
}

// sameSubject compares subjects. The order of names with the same type has no meaning.
func sameSubject(a, b pkix.Name) bool {
	same := func(a, b []string) bool {
		return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
	}
	return a.CommonName == b.CommonName && same(a.Organization, b.Organization) && same(a.OrganizationalUnit, b.OrganizationalUnit)
}

// tokenIn returns the validity of the token in a Secret, or an error if that has none of the account.
func tokenIn(data map[string][]byte, uid string) (validity, error) {
	claims := struct {
		Expires    int64 `json:"exp"`
		Issued     int64 `json:"iat"`
		Kubernetes struct {
			Account struct {
				UID string `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}{}
	if err := untrusted.Claims(string(data[tokenKey]), &claims); err != nil {
		return validity{}, err
	}
	if claims.Kubernetes.Account.UID != uid {
		return validity{}, errors.New("its token is that of another account")
	}
	return validity{from: time.Unix(claims.Issued, 0), until: time.Unix(claims.Expires, 0)}, nil
}

// credentialOf is the part of a Secret's data that is the credential.
func credentialOf(data map[string][]byte, byToken bool) map[string][]byte {
	if byToken {
		return map[string][]byte{tokenKey: data[tokenKey]}
	}
	return map[string][]byte{corev1.TLSCertKey: data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: data[corev1.TLSPrivateKeyKey]}
}

// renewed is the condition of a valid credential.
func (v validity) renewed(byToken bool) *metav1.Condition {
	from, until := v.from.UTC().Format(time.RFC3339), v.until.UTC().Format(time.RFC3339)
	if byToken {
		return &metav1.Condition{
			Type: addonv1alpha1.ConditionTokenRefreshed, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonTokenRefreshed,
			Message: "Addon token refreshed, expires at " + until,
		}
	}
	return &metav1.Condition{
		Type: addonv1alpha1.ConditionCertificateRotated, Status: metav1.ConditionTrue, Reason: addonv1alpha1.ReasonCertificateUpdated,
		Message: fmt.Sprintf("client certificate rotated starting from %s to %s", from, until),
	}
}

// notRenewed is the condition of a credential that could not be renewed.
func notRenewed(of registration, byToken bool, err error) *metav1.Condition {
	if byToken {
		return &metav1.Condition{
			Type: addonv1alpha1.ConditionTokenRefreshed, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonTokenCreationFailed,
			Message: fmt.Sprintf("Failed to create token: %v", err),
		}
	}
	return &metav1.Condition{
		Type: addonv1alpha1.ConditionCertificateRotated, Status: metav1.ConditionFalse, Reason: addonv1alpha1.ReasonCertificateUpdateFailed,
		Message: fmt.Sprintf("Failed to rotate the client certificate of signer %s: %v", of.signer, err),
	}
}
