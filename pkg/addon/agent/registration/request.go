// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/utils/ptr"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// mostPending is how many undecided requests an add-on may have before no more are created.
	mostPending = 10
	// The agent looks at a request with growing pauses.
	firstLook = 500 * time.Millisecond
	lastLook  = time.Minute
)

// request is a request for a certificate whose key only this process has.
type request struct {
	name    string
	created time.Time
	key     []byte
	of      registration
}

// requests are the requests of all add-ons, by Secret. A restart forgets them.
type requests struct {
	// client returns how to create requests.
	client  func(context.Context) (certificatesv1client.CertificateSigningRequestInterface, error)
	cluster string
	now     func() time.Time
	pending map[types.NamespacedName]request
}

// certificate returns the certificate and key for a registration, or nil and when to look again. It
// creates a request first if there is none. The request stays until its certificate is stored, because a
// Secret that cannot be written yet is no reason for another one.
func (r *requests) certificate(ctx context.Context, of registration) (data map[string][]byte, again time.Duration, err error) {
	hub, err := r.client(ctx)
	if err != nil {
		return nil, 0, err
	}
	pending, exists := r.pending[of.secret]
	if !exists || !sameSubject(pending.of.subject, of.subject) {
		if pending, err = r.create(ctx, hub, of); err != nil {
			return nil, lastLook, err
		}
		r.pending[of.secret] = pending
	}
	csr, err := hub.Get(ctx, pending.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		delete(r.pending, of.secret)
		return nil, firstLook, nil
	case err != nil:
		return nil, 0, fmt.Errorf("reading CertificateSigningRequest %q: %w", pending.name, err)
	case len(csr.Status.Certificate) > 0:
		return map[string][]byte{corev1.TLSCertKey: csr.Status.Certificate, corev1.TLSPrivateKeyKey: pending.key}, 0, nil
	case isFinal(csr):
		return nil, lastLook, refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed,
			"CertificateSigningRequest %q was denied or failed: when it is deleted, the agent creates another one", pending.name)
	}
	return nil, min(max(firstLook, r.now().Sub(pending.created)/2), lastLook), nil
}

// isFinal reports whether a request without a certificate never gets one.
func isFinal(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
	})
}

// create requests a certificate for a new key.
func (r *requests) create(ctx context.Context, hub certificatesv1client.CertificateSigningRequestInterface, of registration) (request, error) {
	own := map[string]string{clusterv1.ClusterNameLabel: r.cluster, addonv1alpha1.AddOnNameLabel: of.addOn}
	if err := refuseMore(ctx, hub, own); err != nil {
		return request{}, err
	}
	key, content, err := newRequest(of)
	if err != nil {
		return request{}, fmt.Errorf("making a request for a certificate of add-on %q: %w", of.addOn, err)
	}
	csr, err := hub.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "addon-" + r.cluster + "-" + of.addOn + "-", Labels: maps.Clone(own)},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: content, SignerName: of.signer, ExpirationSeconds: ptr.To(int32(clusterv1.AgentCertificateLife.Seconds())),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return request{}, fmt.Errorf("creating a CertificateSigningRequest of add-on %q: %w", of.addOn, err)
	}
	return request{name: csr.Name, created: r.now(), key: key, of: of}, nil
}

// refuseMore returns a refusal while too many requests of an add-on wait.
func refuseMore(ctx context.Context, hub certificatesv1client.CertificateSigningRequestInterface, own labels.Set) error {
	list, err := hub.List(ctx, metav1.ListOptions{LabelSelector: own.String()})
	if err != nil {
		return fmt.Errorf("listing CertificateSigningRequests: %w", err)
	}
	waiting := 0
	for i := range list.Items {
		if len(list.Items[i].Status.Certificate) == 0 && !isFinal(&list.Items[i]) {
			waiting++
		}
	}
	if waiting >= mostPending {
		return refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed,
			"%d CertificateSigningRequests with labels %s wait for an approval or a signature: check the add-on's manager, and delete them", waiting, own)
	}
	return nil
}

// newRequest returns a key and a request for it, both in PEM.
func newRequest(of registration) (key, content []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: of.subject, DNSNames: []string{of.addOn + ".addon.open-cluster-management.io"},
	}, private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}
