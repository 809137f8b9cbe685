// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/enqueue"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Name is the controller's name.
const Name = "managedclusteraddon.registration"

const (
	// DefaultInterval is how often the Secrets on the member are checked.
	DefaultInterval = 5 * time.Minute
	// refusedRetry is the pause before something is tried again that a person or another controller
	// has to change.
	refusedRetry = 15 * time.Second
)

// Reconciler maintains the credentials of add-ons.
type Reconciler struct {
	// Hub reads the ManagedClusterAddOns of the cluster from a cache, writes their status and requests
	// tokens.
	Hub client.Client
	// Cluster is the name of the cluster.
	Cluster string
	// Driver is how agents of add-ons authenticate to the hub.
	Driver addonv1alpha1.KubeClientDriver
	// Requests returns how to create requests for certificates, as the agent that managers of add-ons
	// know.
	Requests func(context.Context) (certificatesv1client.CertificateSigningRequestInterface, error)
	// Server is where the hub is, for kubeconfigs.
	Server clientcmdapi.Cluster
	// Secrets are those of the add-ons on the member.
	Secrets *Secrets
	Clock   clock.PassiveClock
	// Interval is how often the Secrets on the member are checked. Zero is DefaultInterval.
	Interval time.Duration

	requests requests
	// named are the add-ons whose managers were told the subject of tokens.
	named sets.Set[string]
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the ManagedClusterAddOns in the manager's cache: only the cluster's. Add-ons
// that were deleted while the agent was stopped are found in the record of Secrets.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Interval == 0 {
		r.Interval = DefaultInterval
	}
	r.requests = requests{client: r.Requests, cluster: r.Cluster, now: r.Clock.Now, pending: map[types.NamespacedName]request{}}
	r.named = sets.New[string]()
	relevant := enqueue.Updates(func(before, after *addonv1alpha1.ManagedClusterAddOn) bool {
		return !slices.EqualFunc(registrationsOf(before), registrationsOf(after), registration.equals) || accountOf(before) != accountOf(after) ||
			before.Status.KubeClientDriver != after.Status.KubeClientDriver || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	})
	recorded := make(chan event.GenericEvent)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return r.findRecorded(ctx, recorded) })); err != nil {
		return reconcileutil.SetupError(Name, err)
	}
	return reconcileutil.SetupError(Name, ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&addonv1alpha1.ManagedClusterAddOn{}, builder.WithPredicates(relevant)).
		WatchesRawSource(source.Channel(recorded, &handler.EnqueueRequestForObject{})).
		Complete(reconcileutil.RetryConflicts(r)))
}

// findRecorded reconciles the add-ons that have Secrets, once the member has answered.
func (r *Reconciler) findRecorded(ctx context.Context, found chan<- event.GenericEvent) error {
	const pause = 10 * time.Second
	recorded, err := r.Secrets.recorded(ctx)
	for ; err != nil; recorded, err = r.Secrets.recorded(ctx) {
		log.FromContext(ctx).Info("Could not read which Secrets add-ons have; retrying", "error", err.Error())
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
	for name := range recorded {
		addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: r.Cluster, Name: name}}
		select {
		case <-ctx.Done():
			return nil
		case found <- event.GenericEvent{Object: addOn}:
		}
	}
	return nil
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	exists, err := reconcileutil.GetIfExists(ctx, r.Hub, req.NamespacedName, addOn, "reading ManagedClusterAddOn %s", req.NamespacedName)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !exists:
		r.forget(req.Name)
		r.named.Delete(req.Name)
		return ctrl.Result{}, r.Secrets.keep(ctx, req.Name)
	case addOn.DeletionTimestamp != nil:
		return ctrl.Result{}, nil // Its agent may need the credential to clean up.
	}
	again, err := r.reconcile(ctx, addOn)
	return reconcileutil.RequeueOnConflict(ctrl.Result{RequeueAfter: again}, err)
}

// forget drops the requests of an add-on, or of its registrations that are not wanted.
func (r *Reconciler) forget(addOn string, except ...types.NamespacedName) {
	maps.DeleteFunc(r.requests.pending, func(key types.NamespacedName, pending request) bool {
		return pending.of.addOn == addOn && !slices.Contains(except, key)
	})
}

func (r *Reconciler) reconcile(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (time.Duration, error) {
	registrations := registrationsOf(addOn)
	var secrets []types.NamespacedName
	for _, registration := range registrations {
		secrets = append(secrets, registration.secret)
	}
	r.forget(addOn.Name, secrets...)
	if err := r.Secrets.keep(ctx, addOn.Name, secrets...); err != nil || len(registrations) == 0 {
		return 0, err
	}
	if err := r.chooseDriver(ctx, addOn, registrations); err != nil {
		return 0, err
	}
	again := r.Interval
	var conditions []metav1.Condition
	var failures []error
	for _, registration := range registrations {
		wait, condition, err := r.ensure(ctx, addOn, registration)
		if wait > 0 {
			again = min(again, wait)
		}
		if condition != nil {
			conditions = append(conditions, *condition)
		}
		failures = append(failures, err)
	}
	// Several certificates have one condition: a failure is what it shows.
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return -strings.Compare(string(a.Status), string(b.Status)) })
	failures = append(failures, client.IgnoreNotFound(reconcileutil.PatchStatus(ctx, r.Hub, addOn, func() {
		for _, condition := range conditions {
			meta.SetStatusCondition(&addOn.Status.Conditions, condition)
		}
	}, "writing the credentials into the status of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)))
	return again, errors.Join(failures...)
}

// chooseDriver tells the hub and the manager how the add-on's agent authenticates, and as whom with a token.
// Managers keep that subject. One that only knows certificates writes its own again, so each process
// writes it once.
func (r *Reconciler) chooseDriver(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, registrations []registration) error {
	if !slices.ContainsFunc(registrations, registration.forHub) {
		return nil
	}
	tell := r.Driver == addonv1alpha1.DriverToken && (addOn.Status.KubeClientDriver != r.Driver || !r.named.Has(addOn.Name))
	err := reconcileutil.PatchStatus(ctx, r.Hub, addOn, func() {
		addOn.Status.KubeClientDriver = r.Driver
		for i := range addOn.Status.Registrations {
			if of := &addOn.Status.Registrations[i]; tell && of.SignerName == certificatesv1.KubeAPIServerClientSignerName {
				of.Subject = addonv1alpha1.TokenSubject(r.Cluster, addOn.Name)
			}
		}
	}, "writing the driver of ManagedClusterAddOn %s/%s", addOn.Namespace, addOn.Name)
	if err == nil && tell {
		r.named.Insert(addOn.Name)
	}
	return client.IgnoreNotFound(err)
}

// ensure maintains one Secret. It returns when to look again, and the condition if it is known.
func (r *Reconciler) ensure(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, of registration) (time.Duration, *metav1.Condition, error) {
	byToken := of.forHub() && r.Driver == addonv1alpha1.DriverToken
	if of.forHub() && !byToken && of.subject.CommonName == addonv1alpha1.TokenSubject(r.Cluster, addOn.Name).User {
		return 0, nil, nil // The manager replaces it when it knows the driver.
	}
	wait, condition, err := r.renew(ctx, addOn, of, byToken)
	switch refused := refusal.Of(err); {
	case refused != nil:
		return max(wait, refusedRetry), notRenewed(of, byToken, refused), nil
	case err == nil || apierrors.IsConflict(err):
		return wait, condition, err
	}
	return 0, notRenewed(of, byToken, err), err
}

func (r *Reconciler) renew(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, of registration, byToken bool) (time.Duration, *metav1.Condition, error) {
	secret, err := r.Secrets.read(ctx, of.secret)
	if err != nil {
		return 0, nil, err
	}
	kubeconfig, err := r.kubeconfig(of)
	if err != nil {
		return 0, nil, err
	}
	validityOf := func(data map[string][]byte) (validity, error) { return certificateIn(data, of.subject) }
	issue := func() (map[string][]byte, time.Duration, error) { return r.requests.certificate(ctx, of) }
	if byToken {
		account := accountOf(addOn)
		if account == "" {
			return 0, nil, nil // The hub has not created it yet.
		}
		validityOf = func(data map[string][]byte) (validity, error) { return tokenIn(data, account) }
		issue = func() (map[string][]byte, time.Duration, error) { return token(ctx, r.Hub, r.Cluster, addOn.Name) }
	}
	credential := credentialOf(secret.Data, byToken)
	valid, err := validityOf(credential)
	if renew := valid.renewAt(of.secret); err != nil || !r.Clock.Now().Before(renew) {
		var again time.Duration
		if credential, again, err = issue(); err != nil || credential == nil {
			return again, nil, err
		}
		if valid, err = validityOf(credential); err != nil {
			delete(r.requests.pending, of.secret)
			return r.Interval, nil, refusal.New(addonv1alpha1.ReasonCertificateUpdateFailed, "the hub issued another credential than requested: %w", err)
		}
	}
	if err := r.Secrets.write(ctx, addOn.Name, secret, r.data(kubeconfig, credential)); err != nil {
		return 0, nil, err
	}
	delete(r.requests.pending, of.secret)
	return max(valid.renewAt(of.secret).Sub(r.Clock.Now()), time.Second), valid.renewed(byToken), nil
}

// data is the content of a Secret.
func (r *Reconciler) data(kubeconfig []byte, credential map[string][]byte) map[string][]byte {
	data := maps.Clone(credential)
	data[clusterNameKey], data[agentNameKey] = []byte(r.Cluster), []byte(clusterv1.AgentName)
	if kubeconfig != nil {
		data[kubeconfigKey] = kubeconfig
	}
	return data
}

// kubeconfig refers to the other files of the Secret. It is nil for other signers than the hub's.
func (r *Reconciler) kubeconfig(of registration) ([]byte, error) {
	if !of.forHub() {
		return nil, nil
	}
	const context, cluster, user = "default-context", "default-cluster", "default-auth"
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &r.Server
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificate: "tls.crt", ClientKey: "tls.key"}
	if r.Driver == addonv1alpha1.DriverToken {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{TokenFile: tokenKey}
	}
	config.Contexts[context] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = context
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("making the kubeconfig of add-on %q: %w", of.addOn, err)
	}
	return content, nil
}
