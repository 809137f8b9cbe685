// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// ApproverName is the name of the controller that Approver is, and of its events' source.
const ApproverName = "klusterlet.approve"

// AgentKeyAnnotation is on a ManagedCluster whose agent was admitted without a person. Its value is
// the fingerprint of that agent's key: its SHA-256 in hexadecimal digits.
const AgentKeyAnnotation = "fleetgate.io/agent-key"

const (
	// keepServed is how long a request with a certificate is kept: agents fetch it at once, and
	// create no further request while ten exist.
	keepServed = 10 * time.Minute
	// askAgain is how often permission to renew is checked again after a denial, and askFor how
	// long.
	askAgain = 15 * time.Second
	askFor   = 5 * time.Minute
	// signedWithin is how long an approved request may be without its certificate.
	signedWithin = 30 * time.Second
)

// Approver approves requests of klusterlets by the decision of Decide, signs approved ones if it
// can, and deletes served ones. Requests for agents of add-ons it signs and deletes in the same way,
// and approves none.
type Approver struct {
	// Client writes; it reads ManagedClusters, from a cache if it has one.
	Client client.Client
	// Requests is a cache of requests with a cluster's label.
	Requests cache.Cache
	// Recorder records what was not approved, and why.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// Users are those whose clusters are admitted and accepted automatically.
	Users []string
	// Signer signs; nil leaves that to the hub's controller manager.
	Signer *Signer
	// Account returns the account of our agent on a member, and empty for other clusters. Nil:
	// there are no members.
	Account func(context.Context, *clusterv1.ManagedCluster) (string, error)
	// Workers is how many requests are handled at a time. Zero means one.
	Workers int
}

var _ reconcile.Reconciler = (*Approver)(nil)

// SetupWithManager watches requests, and ManagedClusters that are created after their request.
func (a *Approver) SetupWithManager(mgr ctrl.Manager) error {
	ofCluster := func(ctx context.Context, cluster client.Object) []reconcile.Request {
		if len(a.Users) == 0 {
			return nil
		}
		return enqueue.All(ctx, a.Requests, &certificatesv1.CertificateSigningRequestList{},
			client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()})
	}
	return reconcileutil.SetupError(ApproverName, ctrl.NewControllerManagedBy(mgr).
		Named(ApproverName).
		WatchesRawSource(source.Kind[client.Object](a.Requests, &certificatesv1.CertificateSigningRequest{}, &handler.EnqueueRequestForObject{})).
		Watches(&clusterv1.ManagedCluster{}, handler.Funcs{CreateFunc: handler.EnqueueRequestsFromMapFunc(ofCluster).Create}).
		WithOptions(controller.Options{MaxConcurrentReconciles: a.Workers}).
		Complete(reconcileutil.RetryConflicts(a)))
}

// Reconcile implements reconcile.Reconciler.
func (a *Approver) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	csr := &certificatesv1.CertificateSigningRequest{}
	if err := a.Requests.Get(ctx, req.NamespacedName, csr); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	handle := a.reconcile
	switch {
	case ofAddOn(csr):
		handle = a.reconcileAddOn
	case !Concerns(csr):
		return ctrl.Result{}, nil
	}
	result, err := handle(ctx, csr)
	return reconcileutil.RequeueOnConflict(result, client.IgnoreNotFound(err))
}

func (a *Approver) reconcile(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	request, refused := Read(csr)
	approved, decided := decisionOn(csr)
	switch {
	case refused != nil && decided:
		return ctrl.Result{}, nil
	case refused != nil:
		a.report(csr, refused)
		return ctrl.Result{}, nil
	case len(csr.Status.Certificate) > 0:
		return a.remove(ctx, csr)
	case approved && a.Signer != nil:
		return ctrl.Result{}, a.sign(ctx, csr, csr.Spec.ExpirationSeconds)
	case approved:
		return a.reportNotSigned(csr), nil
	case decided:
		return ctrl.Result{}, nil
	}
	return a.decide(ctx, csr, request)
}

// decisionOn returns whether somebody has approved a request, and whether somebody has decided at
// all.
func decisionOn(csr *certificatesv1.CertificateSigningRequest) (approved, decided bool) {
	for _, condition := range csr.Status.Conditions {
		approved = approved || condition.Type == certificatesv1.CertificateApproved
		decided = decided || condition.Type != certificatesv1.CertificateFailed
	}
	for _, condition := range csr.Status.Conditions {
		approved = approved && condition.Type != certificatesv1.CertificateDenied && condition.Type != certificatesv1.CertificateFailed
	}
	return approved, decided
}

// report records why a person has to decide about a request.
func (a *Approver) report(csr *certificatesv1.CertificateSigningRequest, refused *refusal.Refusal) {
	a.Recorder.Eventf(csr, nil, corev1.EventTypeWarning, refused.Reason, "Approve", "%s", refused.Message)
}

// reportNotSigned records that nobody has signed a request some time after its approval, and the
// remedy.
func (a *Approver) reportNotSigned(csr *certificatesv1.CertificateSigningRequest) ctrl.Result {
	since := csr.CreationTimestamp.Time
	for _, condition := range csr.Status.Conditions {
		if condition.Type == certificatesv1.CertificateApproved && condition.LastUpdateTime.After(since) {
			since = condition.LastUpdateTime.Time
		}
	}
	if left := since.Add(signedWithin).Sub(a.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}
	}
	instead := "join the cluster with the agent of fleetgate, which needs no certificate"
	if ofAddOn(csr) {
		instead = "start the cluster's fleetgate agent without registration.hubCertificate, so that its add-ons get tokens"
	}
	a.report(csr, refusal.New(ReasonNotSigned,
		"the request is approved, but not signed for %s: give the gateway an authority of the API server's --client-ca-file (klusterlets.signerCertFile), or %s", signedWithin, instead))
	return ctrl.Result{}
}

func (a *Approver) decide(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request Request) (ctrl.Result, error) {
	cluster := &clusterv1.ManagedCluster{}
	if err := a.Client.Get(ctx, client.ObjectKey{Name: request.Cluster}, cluster); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading ManagedCluster %q: %w", request.Cluster, err)
	}
	state := clusterStateOf(cluster)
	if a.Account != nil && state.Known {
		var err error
		if state.Account, err = a.Account(ctx, cluster); err != nil {
			return ctrl.Result{}, fmt.Errorf("reading the owner of ManagedCluster %q: %w", cluster.Name, err)
		}
	}
	decision, refused := Decide(request, state, a.Users)
	switch decision {
	case Renew:
		return a.renew(ctx, csr, request)
	case Admit:
		if err := a.admit(ctx, cluster, request.Key); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, a.approve(ctx, csr, "the requester is in klusterlets.autoApprovedUsers")
	case Warn:
		a.report(csr, refused)
		a.Recorder.Eventf(cluster, csr, corev1.EventTypeWarning, refused.Reason, "Approve", "%s", refused.Message)
	}
	return ctrl.Result{}, nil
}

func clusterStateOf(cluster *clusterv1.ManagedCluster) ClusterState {
	accepted := meta.FindStatusCondition(cluster.Status.Conditions, clusterv1.ConditionHubAccepted)
	return ClusterState{
		Known:  cluster.UID != "" && cluster.DeletionTimestamp == nil,
		Denied: accepted != nil && accepted.Reason == clusterv1.ReasonDenied || !cluster.Spec.HubAcceptsClient && cluster.Annotations[clusterv1.AutomaticallyAcceptedAnnotation] != "",
		Key:    cluster.Annotations[AgentKeyAnnotation],
		Joined: meta.IsStatusConditionTrue(cluster.Status.Conditions, clusterv1.ConditionJoined),
	}
}

// renew approves an agent's own request, if the agent has permission. It retries for a while,
// because the permissions of a newly accepted cluster can still be missing.
func (a *Approver) renew(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, request Request) (ctrl.Result, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extraOf(csr),
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: "register.open-cluster-management.io", Resource: "managedclusters", Subresource: "clientcertificates", Verb: "renew",
		},
	}}
	if err := a.Client.Create(ctx, review); err != nil {
		return ctrl.Result{}, fmt.Errorf("reviewing whether %s may renew its certificate: %w", request.Requester, err)
	}
	if review.Status.Allowed {
		return ctrl.Result{}, a.approve(ctx, csr, "the agent of the cluster renews its own certificate")
	}
	a.report(csr, refusal.New(ReasonRenewalForbidden,
		"%s is not allowed to renew its certificate: accept its cluster with clusteradm accept --clusters %s", request.Requester, request.Cluster))
	if a.Clock.Since(csr.CreationTimestamp.Time) > askFor {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: askAgain}, nil
}

func extraOf(csr *certificatesv1.CertificateSigningRequest) map[string]authorizationv1.ExtraValue {
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range csr.Spec.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	return extra
}

// admit records the key of the cluster's agent before it admits the agent, and accepts the cluster
// only once, so that somebody may deny it afterwards.
func (a *Approver) admit(ctx context.Context, cluster *clusterv1.ManagedCluster, key string) error {
	return reconcileutil.Patch(ctx, a.Client, cluster, func() {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, AgentKeyAnnotation, key)
		if cluster.Annotations[clusterv1.AutomaticallyAcceptedAnnotation] == "" {
			metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1.AutomaticallyAcceptedAnnotation, a.Clock.Now().UTC().Format(time.RFC3339))
			cluster.Spec.HubAcceptsClient = true
		}
	}, "accepting ManagedCluster %q", cluster.Name)
}

func (a *Approver) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, why string) error {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: ReasonApproved, Message: why,
	})
	if err := a.Client.SubResource("approval").Update(ctx, csr); err != nil {
		return fmt.Errorf("approving CertificateSigningRequest %q: %w", csr.Name, err)
	}
	a.Recorder.Eventf(csr, nil, corev1.EventTypeNormal, ReasonApproved, "Approve", "%s", why)
	return nil
}

func (a *Approver) sign(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, seconds *int32) error {
	certificate, err := a.Signer.Sign(csr.Spec.Request, seconds)
	if err != nil {
		return fmt.Errorf("signing CertificateSigningRequest %q: %w", csr.Name, err)
	}
	csr.Status.Certificate = certificate
	if err := a.Client.Status().Update(ctx, csr); err != nil {
		return fmt.Errorf("handing over the certificate of CertificateSigningRequest %q: %w", csr.Name, err)
	}
	return nil
}

// remove deletes a served request after its agent had time to read it.
func (a *Approver) remove(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	served := csr.CreationTimestamp.Time
	for _, condition := range csr.Status.Conditions {
		if condition.LastUpdateTime.After(served) {
			served = condition.LastUpdateTime.Time
		}
	}
	if left := served.Add(keepServed).Sub(a.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if err := a.Client.Delete(ctx, csr, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting CertificateSigningRequest %q, which has served: %w", csr.Name, err)
	}
	return ctrl.Result{}, nil
}
