// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/expect"
)

const (
	hubSigner   = "kubernetes.io/kube-apiserver-client"
	otherSigner = "example.com/addons"
)

// manager is the manager of an add-on, written from the contract: it names the registrations of the
// add-on's agents, grants them rights on the hub, approves their requests, and signs those of its own
// signer.
type manager struct {
	addOn string
	// signers are those of the registrations.
	signers []string
	// namespace of the agents on the clusters.
	namespace   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newManager(addOn, namespace string, signers ...string) *manager {
	GinkgoHelper()
	m := &manager{addOn: addOn, namespace: namespace, signers: signers}
	var err error
	m.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority of " + addOn}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, m.key.Public(), m.key)
	Expect(err).NotTo(HaveOccurred())
	m.certificate, err = x509.ParseCertificate(der)
	Expect(err).NotTo(HaveOccurred())
	return m
}

// run manages the add-on on all clusters until it is stopped. A failure is retried, as in any manager.
func (m *manager) run() {
	GinkgoHelper()
	running := expect.Started(func(context.Context) (func(context.Context) error, error) {
		return func(ctx context.Context) error {
			for ctx.Err() == nil {
				if err := m.manage(ctx); err != nil && ctx.Err() == nil {
					GinkgoWriter.Println("manager of", m.addOn+":", err)
				}
				select {
				case <-ctx.Done():
				case <-time.After(100 * time.Millisecond):
				}
			}
			return nil
		}, nil
	})
	DeferCleanup(running.Stop)
}

func (m *manager) manage(ctx context.Context) error {
	addOns := &addonv1alpha1.ManagedClusterAddOnList{}
	if err := hubClient.List(ctx, addOns, client.MatchingFields{"metadata.name": m.addOn}); err != nil {
		return err
	}
	for i := range addOns.Items {
		if err := m.register(ctx, &addOns.Items[i]); err != nil {
			return err
		}
	}
	requests := &certificatesv1.CertificateSigningRequestList{}
	if err := hubClient.List(ctx, requests, client.MatchingLabels{"open-cluster-management.io/addon-name": m.addOn}); err != nil {
		return err
	}
	for i := range requests.Items {
		if err := m.serve(ctx, &requests.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func groupOf(cluster, addOn string) string {
	return "system:open-cluster-management:cluster:" + cluster + ":addon:" + addOn
}

// register grants the agents of a cluster their rights, and writes what they are to request. With a token,
// agents write as whom they authenticate, which is kept.
func (m *manager) register(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	if addOn.DeletionTimestamp != nil {
		return nil
	}
	group := groupOf(addOn.Namespace, m.addOn)
	base := addOn.DeepCopy()
	byToken := addOn.Status.KubeClientDriver == "token"
	subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}
	addOn.Status.Registrations = nil
	for _, signer := range m.signers {
		registration := addonv1alpha1.RegistrationConfig{SignerName: signer, Subject: addonv1alpha1.Subject{User: group + ":agent:" + m.addOn}}
		if signer == hubSigner {
			registration.Subject.Groups = []string{group, "system:open-cluster-management:addon:" + m.addOn, "system:authenticated"}
		}
		for _, has := range base.Status.Registrations {
			if byToken && signer == hubSigner && has.SignerName == signer {
				registration.Subject = has.Subject
				subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: has.Subject.User}
			}
		}
		addOn.Status.Registrations = append(addOn.Status.Registrations, registration)
	}
	role := &rbacv1.Role{ObjectMeta: build.In(addOn.Namespace, m.addOn), Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}}}
	binding := &rbacv1.RoleBinding{ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: m.addOn}, Subjects: []rbacv1.Subject{subject}}
	if err := hubClient.Create(ctx, role); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := hubClient.Create(ctx, binding); apierrors.IsAlreadyExists(err) {
		err = hubClient.Update(ctx, binding)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	addOn.Status.Namespace = m.namespace
	meta.SetStatusCondition(&addOn.Status.Conditions, metav1.Condition{Type: "RegistrationApplied", Status: metav1.ConditionTrue, Reason: "SetPermissionApplied"})
	return hubClient.Status().Patch(ctx, addOn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// serve approves a request, if the agent may have the certificate, and signs it with its own signer.
func (m *manager) serve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	if len(csr.Status.Conditions) == 0 {
		if !m.allows(csr) {
			return nil
		}
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApprovedByHubCSRApprovingController",
		}}
		return hubClient.SubResource("approval").Update(ctx, csr)
	}
	if csr.Spec.SignerName != otherSigner || len(csr.Status.Certificate) > 0 {
		return nil
	}
	request, err := requestIn(csr)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: request.Subject, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, m.certificate, request.PublicKey, m.key)
	if err != nil {
		return err
	}
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return hubClient.Status().Update(ctx, csr)
}

// allows is the usual check of managers. It compares the beginning of the requester's name only.
func (m *manager) allows(csr *certificatesv1.CertificateSigningRequest) bool {
	cluster := csr.Labels["open-cluster-management.io/cluster-name"]
	request, err := requestIn(csr)
	if err != nil || !strings.HasPrefix(csr.Name, "addon") || request.Subject.CommonName != groupOf(cluster, m.addOn)+":agent:"+m.addOn {
		return false
	}
	if csr.Spec.SignerName == hubSigner && !slices.Contains(request.Subject.Organization, groupOf(cluster, m.addOn)) {
		return false
	}
	return strings.HasPrefix(csr.Spec.Username, "system:open-cluster-management:"+cluster)
}

func requestIn(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	block, rest := pem.Decode(csr.Spec.Request)
	if block == nil || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("CertificateSigningRequest %q has no request", csr.Name)
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
