// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

const (
	// firstRetry and lastRetry bound the retry delay. The shortest token, of ten minutes, leaves
	// two minutes for retries.
	firstRetry, lastRetry = time.Second, 30 * time.Second
	// firstErrorRetry is the first delay after an error that cannot be reported in a status.
	firstErrorRetry = 200 * time.Millisecond
	// recheckInterval is the longest interval between checks: clocks can jump, and members can change
	// their signing keys.
	recheckInterval = time.Hour
	// retryInterval is the interval of checks whether a user has solved a problem.
	retryInterval = time.Minute
)

// Reconciler refreshes the tokens of one member's accounts.
type Reconciler struct {
	// Hub accesses the member's namespace on the hub. It must not read Secrets from a cache,
	// because the cache lacks a Secret that lost its label.
	Hub client.Client
	// Live reads ManagedServiceAccounts from the hub without a cache.
	Live client.Reader
	// Member accesses ServiceAccounts on the member without a cache.
	Member client.Client
	// MemberCache watches the managed ServiceAccounts on the member, and should contain nothing
	// else.
	MemberCache cache.Cache
	// HubNamespace is the member's namespace on the hub.
	HubNamespace string
	// AccountNamespace is the namespace of the accounts on the member, which MemberCache watches.
	AccountNamespace string
	// AgentNamespace is the agent's namespace on the member. It distinguishes the accounts of
	// agents for different hubs.
	AgentNamespace string
	// Adopt records accounts that another product's agent holds for ManagedServiceAccounts, and
	// takes them over when that agent is gone.
	Adopt bool
	// MemberCA returns the PEM certificates that verify the member's API server.
	MemberCA func() ([]byte, error)
	Clock    clock.PassiveClock
	// Epochs detect whether a restored hub lost a ManagedServiceAccount. If nil, accounts are never
	// retained.
	Epochs *retention.Epochs
	// Retention counts the retained accounts. It must be set if Epochs is.
	Retention *retention.Tracker
	// Recorder writes events on ManagedServiceAccounts.
	Recorder events.EventRecorder
}

// SetupWithManager watches ManagedServiceAccounts and their Secrets on the hub, and the accounts and the
// CA on the member, to restore deleted or altered ones. The cache has only the metadata of Secrets.
func (r *Reconciler) SetupWithManager(hub ctrl.Manager) error {
	r.Epochs.RegisterLargest(r.largestEpoch)
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
		return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: r.HubNamespace, Name: object.GetName()}}}
	})
	accounts := source.Kind[client.Object](r.MemberCache, &corev1.ServiceAccount{}, byName, managed())
	changes := make(caChanges)
	follow := func(ctx context.Context) error { return changes.follow(ctx, r.MemberCA) }
	if err := hub.Add(manager.RunnableFunc(follow)); err != nil {
		return fmt.Errorf("following the CA of the member's API server: %w", err)
	}
	return ctrl.NewControllerManagedBy(hub).
		Named("managedserviceaccount.rotator").
		For(&authenticationv1beta1.ManagedServiceAccount{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesMetadata(&corev1.Secret{}, byName, builder.WithPredicates(managed())).
		WatchesRawSource(accounts).
		WatchesRawSource(changes.source(r)).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](firstErrorRetry, lastRetry),
		}).
		Complete(r)
}

// managed selects objects that have, or had until now, the label.
func managed() predicate.Predicate {
	carries := predicate.NewPredicateFuncs(isManaged)
	carries.UpdateFunc = func(e event.UpdateEvent) bool { return isManaged(e.ObjectOld) || isManaged(e.ObjectNew) }
	return carries
}

func isManaged(object client.Object) bool {
	return object.GetLabels()[authenticationv1beta1.LabelManagedServiceAccount] == authenticationv1beta1.LabelManagedServiceAccountValue
}

// A mistake is a failure that a user has to solve; retries do not help. It becomes a condition with
// the remedy, and no error of the reconcile.
type mistake string

// Error is the condition's message.
func (m mistake) Error() string { return string(m) }

// Reconcile updates one account and its token, and requeues it for the next refresh.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if ctx.Err() != nil {
		//lint:ignore nilerr The agent is stopping; the error is a consequence.
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var account authenticationv1beta1.ManagedServiceAccount
	found, err := reconcileutil.GetIfExists(ctx, r.Hub, request.NamespacedName, &account, "reading ManagedServiceAccount %s", request.Name)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case !found:
		return r.vanished(ctx, request.NamespacedName)
	case !account.DeletionTimestamp.IsZero():
		return ctrl.Result{}, r.removeAccount(ctx, request.Name)
	}

	before := account.DeepCopy()
	var due time.Time
	onMember, failure := r.ensureAccount(ctx, &account)
	if failure == nil {
		due, failure = r.reconcileToken(ctx, &account, onMember)
	}
	if apierrors.IsConflict(failure) || apierrors.IsAlreadyExists(failure) {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	next, news := min(max(due.Sub(r.Clock.Now()), time.Second), recheckInterval), false
	if failure != nil {
		var failing time.Duration
		failing, news = reportFailure(&account, failure, r.Clock.Now())
		next = tryAgain(failure, failing)
	}
	switch err := r.writeStatus(ctx, before, &account); {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, err)
	}
	if news {
		r.warn(ctx, &account, messageOf(failure))
	}
	return ctrl.Result{RequeueAfter: next}, nil
}

// vanished releases the account of a ManagedServiceAccount that no longer exists. A deletion
// invalidates all tokens, so the agent reads from the hub without a cache.
func (r *Reconciler) vanished(ctx context.Context, key client.ObjectKey) (ctrl.Result, error) {
	err := r.Live.Get(ctx, key, &authenticationv1beta1.ManagedServiceAccount{})
	if err == nil {
		return ctrl.Result{}, nil // the cache will enqueue it
	}
	if !reconcileutil.IsGone(err) {
		return ctrl.Result{}, fmt.Errorf("asking the hub whether ManagedServiceAccount %s still exists: %w", key.Name, err)
	}
	retained, err := r.releaseAccount(ctx, key.Name)
	if retained {
		return ctrl.Result{RequeueAfter: retention.Recheck}, nil
	}
	return ctrl.Result{}, err
}

// warn runs after the status was written, so that it reports only changes.
func (r *Reconciler) warn(ctx context.Context, account *authenticationv1beta1.ManagedServiceAccount, message string) {
	log.FromContext(ctx).Info("Could not refresh the token: "+message, "account", account.Name)
	r.Recorder.Eventf(account, nil, corev1.EventTypeWarning, authenticationv1beta1.ReasonTokenReportFailed, "RefreshToken", "%s", untrusted.Truncate(message, maxNoteBytes))
}

func tryAgain(failure error, failing time.Duration) time.Duration {
	var needsHelp mistake
	if errors.As(failure, &needsHelp) {
		return retryInterval
	}
	return retryAfter(failing)
}
