// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"fleetgate.io/fleetgate/pkg/addon/hub/objects"
	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// RequestsName is the name of the controller that Requests is, and of its events' source.
const RequestsName = "certificatesigningrequest.template"

// ReasonCertificateNotIssued is the reason of an event about a request that was not approved or signed.
const ReasonCertificateNotIssued = "CertificateNotIssued"

// lifetime is how long a certificate of a template's own signer is valid.
const lifetime = 24 * time.Hour

// Authority checks requests and signs certificates.
type Authority struct {
	// Parse returns the content of a request for a client certificate by an agent of the cluster in its
	// label. Otherwise the error is a refusal.
	Parse func(*certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error)
	// Sign returns a client certificate in PEM for such a request.
	Sign func(certificate, key, request []byte, life time.Duration) ([]byte, error)
}

// Requests approves requests of agents of add-ons with templates, and signs those of the templates' own
// signers.
type Requests struct {
	Authority
	// Client reads from a cache, and approves certificates for the hub itself.
	Client client.Client
	// Configs is a cache that keeps configurations without Go types.
	Configs client.Reader
	// Cache has the requests of add-ons.
	Cache cache.Cache
	// Manager approves and signs for other signers, and reads their authorities, with the rights of
	// ManagerAccount.
	Manager  client.Client
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	// Workers is how many requests are handled at a time.
	Workers int
}

var _ reconcile.Reconciler = (*Requests)(nil)

// SetupWithManager watches requests.
func (r *Requests) SetupWithManager(mgr ctrl.Manager) error {
	return reconcileutil.SetupError(RequestsName, ctrl.NewControllerManagedBy(mgr).
		Named(RequestsName).
		WatchesRawSource(source.Kind[client.Object](r.Cache, &certificatesv1.CertificateSigningRequest{}, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Workers}).
		Complete(reconcileutil.RetryConflicts(r)))
}

// Reconcile implements reconcile.Reconciler.
func (r *Requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := r.Cache.Get(ctx, req.NamespacedName, csr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if len(csr.Status.Certificate) > 0 || slices.ContainsFunc(csr.Status.Conditions, isFinal) {
		return ctrl.Result{}, nil
	}
	result, err := r.reconcile(ctx, csr)
	return reconcileutil.RequeueOnConflict(result, client.IgnoreNotFound(err))
}

func isFinal(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed
}

func isApproved(c certificatesv1.CertificateSigningRequestCondition) bool {
	return c.Type == certificatesv1.CertificateApproved
}

func (r *Requests) reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	// The add-on is that of the labels.
	addOn, err := read(ctx, r.Client, types.NamespacedName{Namespace: csr.Labels[clusterv1.ClusterNameLabel], Name: csr.Labels[addonv1alpha1.AddOnNameLabel]})
	if err != nil {
		return ctrl.Result{}, err
	}
	// What is missing is looked for again while agents wait: a request can precede it in the cache.
	later := ctrl.Result{RequeueAfter: max(10*time.Second, r.Clock.Since(csr.CreationTimestamp.Time)/2)}
	switch {
	case addOn.of.UID != "" && !UsesTemplates(addOn.of):
		return ctrl.Result{}, nil
	case addOn.of.UID == "" || addOn.UID == "" || addOn.DeletionTimestamp != nil || !objects.IsAccepted(addOn.cluster):
		return later, nil
	}
	template := &addonv1alpha1.AddOnTemplate{}
	named := addOn.reference(templates())
	if named == nil {
		return later, nil
	}
	if _, err = (configs{r.Configs}).load(ctx, templates(), named, template); err == nil {
		err = r.serve(ctx, csr, addOn, template)
	}
	if refused := refusal.Of(err); refused != nil {
		reason := cmp.Or(refused.Reason, ReasonCertificateNotIssued)
		r.Recorder.Eventf(csr, addOn.ManagedClusterAddOn, corev1.EventTypeWarning, reason, "Issue", "%s", limited(refused.Message))
		r.Recorder.Eventf(addOn.ManagedClusterAddOn, csr, corev1.EventTypeWarning, reason, "Issue", "CertificateSigningRequest %q: %s", csr.Name, limited(refused.Message))
		//lint:ignore nilerr The events report it.
		return ctrl.Result{RequeueAfter: max(later.RequeueAfter, refusedRetry)}, nil
	}
	return ctrl.Result{}, err
}

// serve approves and signs a request that has exactly the subject of the add-on's registration on the
// cluster. The status is no source for that, because agents may write it.
func (r *Requests) serve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, addOn *instance, template *addonv1alpha1.AddOnTemplate) error {
	registrations := registrationsOf(template, addOn.Namespace, addOn.Name)
	i := slices.IndexFunc(registrations, func(has addonv1alpha1.RegistrationConfig) bool { return has.SignerName == csr.Spec.SignerName })
	if i < 0 {
		return refusal.New(ReasonCertificateNotIssued, "AddOnTemplate %q has no registration for signer %s", template.Name, csr.Spec.SignerName)
	}
	parsed, err := r.Parse(csr)
	if err != nil {
		return err
	}
	if !hasSubject(parsed, registrations[i].Subject) {
		return refusal.New(ReasonCertificateNotIssued, "its subject is %q, not that of the registration on cluster %q: %q in %q", parsed.Subject, addOn.Namespace,
			registrations[i].Subject.User, registrations[i].Subject.Groups)
	}
	if !slices.ContainsFunc(csr.Status.Conditions, isApproved) {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApprovedByHubCSRApprovingController",
			Message: "Auto approving addon agent certificate.",
		})
		approver := r.Manager
		if csr.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName {
			approver = r.Client // The gateway has this right where it serves klusterlets.
		}
		if err := approver.SubResource("approval").Update(ctx, csr); err != nil {
			return notIssued(err, "approving CertificateSigningRequest %q", csr.Name)
		}
	}
	for _, wanted := range template.Spec.Registration {
		if wanted.CustomSigner != nil && wanted.CustomSigner.SignerName == csr.Spec.SignerName {
			return r.sign(ctx, csr, wanted.CustomSigner.SigningCA)
		}
	}
	return nil
}

// hasSubject reports whether a request has exactly this subject, without other names.
func hasSubject(request *x509.CertificateRequest, want addonv1alpha1.Subject) bool {
	sorted := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	same := func(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }
	has := request.Subject
	only := pkix.Name{CommonName: has.CommonName, Organization: has.Organization, OrganizationalUnit: has.OrganizationalUnit}
	return has.CommonName == want.User && same(has.Organization, want.Groups) && same(has.OrganizationalUnit, want.OrganizationUnits) &&
		len(has.Names) == len(has.Organization)+len(has.OrganizationalUnit)+1 && has.ToRDNSequence().String() == only.ToRDNSequence().String()
}

// sign signs a request with the authority in a Secret, which is read for each.
func (r *Requests) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, of addonv1alpha1.SigningCARef) error {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: cmp.Or(of.Namespace, addonv1alpha1.HubNamespace), Name: of.Name}
	if err := r.Manager.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return refusal.New(ReasonCertificateNotIssued, "Secret %s with the signing authority does not exist: create it", key)
	} else if err != nil {
		return notIssued(err, "reading Secret %s with the signing authority", key)
	}
	certificate, private := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if err := untrusted.CheckKeyPair(certificate, private); err != nil {
		return refusal.New(ReasonCertificateNotIssued, "Secret %s has no signing authority: %w", key, err)
	}
	signed, err := r.Sign(certificate, private, csr.Spec.Request, lifetime)
	if err != nil {
		return refusal.New(ReasonCertificateNotIssued, "Secret %s: %w", key, err)
	}
	csr.Status.Certificate = signed
	if err := r.Manager.Status().Update(ctx, csr); err != nil {
		return notIssued(err, "handing over the certificate of CertificateSigningRequest %q", csr.Name)
	}
	return nil
}

// notIssued turns a missing right into a refusal with a remedy.
func notIssued(err error, doing string, words ...any) error {
	if apierrors.IsForbidden(err) {
		return refusal.New(ReasonCertificateNotIssued, "%s: %w: grant the right to the user of this message; for a signer of a template that is ServiceAccount %s/%s", fmt.Sprintf(doing, words...), err, addonv1alpha1.HubNamespace, addonv1alpha1.ManagerAccount)
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(doing, words...), err)
}
