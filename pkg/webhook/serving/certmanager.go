// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"fmt"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the cert-manager objects in the gateway's namespace. A self-signed Issuer signs the CA,
// and the Issuer of that CA signs the serving certificate. The Secrets have the names of their
// Certificates.
const (
	SelfSignedIssuer   = "gateway-self-signed"
	AuthorityIssuer    = "gateway-ca"
	CACertificate      = "gateway-ca"
	ServingCertificate = "gateway-serving"
)

// FromCertManager serves a Certificate that cert-manager issues and renews, for the given DNS names
// and addresses. The client must not read from a cache, and must know cert-manager's types.
func FromCertManager(hub client.Client, namespace string, names []string) *Certificates {
	return newCertificates(&certManagerSource{hub: hub, namespace: namespace, names: names}, clock.RealClock{})
}

type certManagerSource struct {
	hub       client.Client
	namespace string
	names     []string
}

func (s *certManagerSource) String() string {
	return fmt.Sprintf("serving certificate of cert-manager's Certificate %s/%s", s.namespace, ServingCertificate)
}

// load maintains the cert-manager objects, and returns the issued certificate once it is Ready.
// During a renewal the previous one is in the Secret.
func (s *certManagerSource) load(ctx context.Context) (material, error) {
	for _, wanted := range s.requests() {
		if err := s.ensure(ctx, wanted); err != nil {
			return material{}, err
		}
	}
	var secret corev1.Secret
	err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: ServingCertificate}, &secret)
	if apierrors.IsNotFound(err) {
		return material{}, s.notReady(ctx)
	}
	if err != nil {
		return material{}, fmt.Errorf("reading Secret %s/%s: %w", s.namespace, ServingCertificate, err)
	}
	found := material{cert: secret.Data[corev1.TLSCertKey], key: secret.Data[corev1.TLSPrivateKeyKey], bundle: secret.Data[cmmeta.TLSCAKey]}
	if len(found.cert) == 0 || len(found.key) == 0 || len(found.bundle) == 0 {
		return material{}, s.notReady(ctx)
	}
	return found, nil
}

func (s *certManagerSource) requests() []client.Object {
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: s.namespace, Name: name} }
	issuedBy := func(issuer string) cmmeta.IssuerReference {
		return cmmeta.IssuerReference{Name: issuer, Kind: cmv1.IssuerKind, Group: cmv1.SchemeGroupVersion.Group}
	}
	dnsNames, addresses := sortNames(s.names)
	var ips []string
	for _, address := range addresses {
		ips = append(ips, address.String())
	}
	key := &cmv1.CertificatePrivateKey{Algorithm: cmv1.ECDSAKeyAlgorithm, Size: 256, RotationPolicy: cmv1.RotationPolicyAlways}
	return []client.Object{
		&cmv1.Issuer{ObjectMeta: named(SelfSignedIssuer), Spec: cmv1.IssuerSpec{IssuerConfig: cmv1.IssuerConfig{SelfSigned: &cmv1.SelfSignedIssuer{}}}},
		&cmv1.Certificate{ObjectMeta: named(CACertificate), Spec: cmv1.CertificateSpec{
			IsCA: true, CommonName: "fleetgate-gateway", SecretName: CACertificate, PrivateKey: key, IssuerRef: issuedBy(SelfSignedIssuer),
			Duration: &metav1.Duration{Duration: authorityLifetime},
		}},
		&cmv1.Issuer{ObjectMeta: named(AuthorityIssuer), Spec: cmv1.IssuerSpec{IssuerConfig: cmv1.IssuerConfig{CA: &cmv1.CAIssuer{SecretName: CACertificate}}}},
		&cmv1.Certificate{ObjectMeta: named(ServingCertificate), Spec: cmv1.CertificateSpec{
			DNSNames: dnsNames, IPAddresses: ips, SecretName: ServingCertificate, PrivateKey: key, IssuerRef: issuedBy(AuthorityIssuer),
			Usages: []cmv1.KeyUsage{cmv1.UsageDigitalSignature, cmv1.UsageServerAuth}, Duration: &metav1.Duration{Duration: leafLifetime},
		}},
	}
}

// ensure creates missing objects. It leaves existing ones as somebody changed them, except for the
// names that the certificate must have.
func (s *certManagerSource) ensure(ctx context.Context, wanted client.Object) error {
	current, ok := wanted.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("asking cert-manager for %s: %T is no object", wanted.GetName(), wanted)
	}
	err := s.hub.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		err = s.hub.Create(ctx, wanted)
		if apierrors.IsAlreadyExists(err) {
			err = nil // Another replica was faster.
		}
	} else if err == nil {
		err = s.correct(ctx, current, wanted)
	}
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("asking cert-manager for a certificate: it is not installed on this hub: %w", err)
	}
	if err != nil {
		return fmt.Errorf("asking cert-manager for %T %s/%s: %w", wanted, wanted.GetNamespace(), wanted.GetName(), err)
	}
	return nil
}

func (s *certManagerSource) correct(ctx context.Context, current, wanted client.Object) error {
	is, isCertificate := current.(*cmv1.Certificate)
	want, wantsCertificate := wanted.(*cmv1.Certificate)
	if !isCertificate || !wantsCertificate || equality.Semantic.DeepEqual(is.Spec.DNSNames, want.Spec.DNSNames) &&
		equality.Semantic.DeepEqual(is.Spec.IPAddresses, want.Spec.IPAddresses) {
		return nil
	}
	is.Spec.DNSNames, is.Spec.IPAddresses = want.Spec.DNSNames, want.Spec.IPAddresses
	return s.hub.Update(ctx, is)
}

// notReady returns cert-manager's reason.
func (s *certManagerSource) notReady(ctx context.Context) error {
	for _, name := range []string{CACertificate, ServingCertificate} {
		var certificate cmv1.Certificate
		if err := s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, &certificate); err != nil {
			return fmt.Errorf("reading Certificate %s/%s: %w", s.namespace, name, err)
		}
		for _, condition := range certificate.Status.Conditions {
			if condition.Type == cmv1.CertificateConditionReady && condition.Status != cmmeta.ConditionTrue {
				return fmt.Errorf("waiting for cert-manager: Certificate %s/%s is not ready: %s", s.namespace, name, condition.Message)
			}
		}
	}
	return fmt.Errorf("waiting for cert-manager to issue Certificate %s/%s: do its controllers run?", s.namespace, ServingCertificate)
}
