// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
	"fleetgate.io/fleetgate/pkg/kube/hash"
	"fleetgate.io/fleetgate/pkg/kube/kubeconfig"
)

// ControllerName is the name of Reconciler.
const ControllerName = "cluster.import"

const (
	// tokenLifetime is how long the agent has to register.
	tokenLifetime = 12 * time.Hour
	// memberTimeout limits each call to a cluster.
	memberTimeout = 15 * time.Second
	// retryLater is the retry delay for problems that a user has to fix, because Secrets are not
	// watched.
	retryLater = 30 * time.Second
	// retrySoon is the retry delay for steps of the hub itself.
	retrySoon = 500 * time.Millisecond
	// fieldOwner is the field manager on clusters.
	fieldOwner = "fleetgate-gateway"
)

// Reasons of a Cluster's condition Imported.
const (
	// ReasonImported is for True.
	ReasonImported = "ImportSucceeded"
	// ReasonKubeConfigNotFound is for False: the Secret, or its key, does not exist.
	ReasonKubeConfigNotFound = "KubeConfigNotFound"
	// ReasonKubeConfigInvalid is for False: the kubeconfig has forbidden or invalid content.
	ReasonKubeConfigInvalid = "KubeConfigInvalid"
	// ReasonKubeConfigRefused is for False: the cluster rejects the credential.
	ReasonKubeConfigRefused = "KubeConfigRefused"
	// ReasonUnreachable is for False: the hub cannot reach the cluster.
	ReasonUnreachable = "Unreachable"
	// ReasonApplyFailed goes with False: the cluster refuses a manifest.
	ReasonApplyFailed = "ApplyFailed"
	// ReasonChartFailed is for False: the agent's chart rejects the Cluster's settings.
	ReasonChartFailed = "ChartNotRendered"
	// ReasonTokenPending is for False: the registration token is not available yet.
	ReasonTokenPending = "WaitingForToken"
	// ReasonTokenConflict is for False: the token, or its Secret, does not belong to the Cluster.
	ReasonTokenConflict = "TokenConflict"
	// ReasonNamespace is for False: clusters cannot register in the namespace.
	ReasonNamespace = "NamespaceNotAllowed"
	// ReasonImageMissing is for False: the gateway does not know the agent's image.
	ReasonImageMissing = "AgentImageMissing"
)

// Reconciler installs agents.
type Reconciler struct {
	// Client writes, and reads Clusters and ClusterRegistrationTokens, from a cache if it has one.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Namespaces are the namespaces in which clusters can register. Empty means all.
	Namespaces []string
	// HubURL and HubCA are the hub's address for agents. If they change, agents are installed again.
	HubURL string
	HubCA  []byte
	// Chart is the agent's chart, and Image the agent's image.
	Chart Chart
	Image string
	// Agents are settings of agents. If they change, agents are installed again.
	Agents AgentDefaults
	// Concurrency is the number of Clusters that are reconciled at a time. Zero means one.
	Concurrency int
}

var _ reconcile.Reconciler = (*Reconciler)(nil)

// SetupWithManager watches the specs of Clusters.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName).
		For(&registrationv1alpha1.Cluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Concurrency}).
		Complete(reconcileutil.RetryConflicts(r))
}

// Reconcile installs or updates the agent of one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var cluster registrationv1alpha1.Cluster
	if err := r.Client.Get(ctx, req.NamespacedName, &cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.needsAgent(&cluster) {
		return reconcileutil.RequeueOnConflict(ctrl.Result{}, r.recordSettings(ctx, &cluster))
	}
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, &cluster))
}

// needsAgent reports whether the agent has to be installed, for the first time or again.
func (r *Reconciler) needsAgent(cluster *registrationv1alpha1.Cluster) bool {
	if cluster.Spec.KubeConfigSecret == "" || !cluster.DeletionTimestamp.IsZero() ||
		cluster.Labels[registrationv1alpha1.LabelClusterManagement] != "" {
		return false
	}
	status := cluster.Status
	deployed := status.AgentDeployedGeneration != nil && *status.AgentDeployedGeneration == cluster.Spec.RedeployAgentGeneration
	return !deployed || status.APIServerURL != r.HubURL || status.APIServerCAHash != hash.Of(r.HubCA) || r.Agents.changed(cluster)
}

// recordSettings records the settings of an agent that an older gateway installed, so that later
// changes are found. Installing it again would need its kubeconfig, which may have expired.
func (r *Reconciler) recordSettings(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	if cluster.Status.AgentDeployedGeneration == nil || !cluster.DeletionTimestamp.IsZero() || isRecorded(cluster) {
		return nil
	}
	return reconcileutil.PatchStatus(ctx, r.Client, cluster, func() { r.Agents.record(&cluster.Status, cluster) }, "recording the agent's settings of Cluster %q", cluster.Name)
}

// result is the result of an attempt: the reason and message of the condition Imported, and the retry
// delay after a failure.
type result struct {
	reason, message string
	retry           time.Duration
}

func failed(reason, format string, args ...any) *result {
	return &result{reason: reason, message: fmt.Sprintf(format, args...), retry: retryLater}
}

func (r *Reconciler) reconcile(ctx context.Context, cluster *registrationv1alpha1.Cluster) (ctrl.Result, error) {
	if err := r.ensureClientID(ctx, cluster); err != nil {
		return ctrl.Result{}, err
	}
	result, err := r.importCluster(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = reconcileutil.PatchStatus(ctx, r.Client, cluster, func() {
		cluster.Status = r.desiredStatus(cluster, result)
	}, "writing the status of Cluster %q", cluster.Name)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: result.retry}, nil
}

// ensureClientID sets a client ID that cannot be guessed.
func (r *Reconciler) ensureClientID(ctx context.Context, cluster *registrationv1alpha1.Cluster) error {
	if cluster.Spec.ClientID != "" {
		return nil
	}
	return reconcileutil.Patch(ctx, r.Client, cluster, func() { cluster.Spec.ClientID = rand.Text() }, "giving Cluster %q a client ID", cluster.Name)
}

func (r *Reconciler) importCluster(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*result, error) {
	if len(r.Namespaces) > 0 && !slices.Contains(r.Namespaces, cluster.Namespace) {
		return failed(ReasonNamespace, "clusters do not register in namespace %q: use one of those in the gateway's --registration-namespaces, or add it there",
			cluster.Namespace), nil
	}
	if r.Image == "" {
		return failed(ReasonImageMissing, "the gateway does not know the agent's image: set registration.agentImage of the gateway, or let the agent register by itself"), nil
	}
	access, failure, err := r.access(ctx, cluster)
	if failure != nil || err != nil {
		return failure, err
	}
	values, failure, err := r.values(ctx, cluster)
	if failure != nil || err != nil {
		return failure, err
	}
	return r.install(ctx, cluster, access.Config(), *values)
}

// access reads the kubeconfig, only from the Cluster's own namespace: a user who can create a Cluster
// may have no right to read Secrets elsewhere.
func (r *Reconciler) access(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*kubeconfig.Access, *result, error) {
	if other := cluster.Spec.KubeConfigSecretNamespace; other != "" && other != cluster.Namespace {
		return nil, failed(ReasonKubeConfigNotFound, "spec.kubeConfigSecretNamespace is %q: only Secrets of the Cluster's own namespace are read; copy it to %q",
			other, cluster.Namespace), nil
	}
	name := cluster.Spec.KubeConfigSecret
	var secret corev1.Secret
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret)
	if apierrors.IsNotFound(err) {
		return nil, failed(ReasonKubeConfigNotFound, "Secret %q does not exist: create it, with the kubeconfig under the key %q", name, registrationv1alpha1.KubeConfigKey), nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	raw, ok := secret.Data[registrationv1alpha1.KubeConfigKey]
	if !ok {
		return nil, failed(ReasonKubeConfigNotFound, "Secret %q has no key %q: put the kubeconfig there", name, registrationv1alpha1.KubeConfigKey), nil
	}
	access, err := kubeconfig.Parse(raw)
	if err == nil && access.ProxyURL != nil {
		err = errors.New("proxy-url must not be set: the hub calls the cluster directly")
	}
	if err != nil {
		return nil, failed(ReasonKubeConfigInvalid, "the kubeconfig in Secret %q is invalid: %v", name, err), nil
	}
	return access, nil, nil
}

// values are those of the registration token for this Cluster alone, whose use is reset. They are nil,
// with a result, while the token is not available or another owner's object has its name.
func (r *Reconciler) values(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*registrationv1alpha1.AgentValues, *result, error) {
	values, token, failure, err := r.issued(ctx, cluster)
	if values == nil {
		return nil, failure, err
	}
	return values, nil, r.reopen(ctx, token)
}

// issued creates the registration token of a Cluster, and reads its values.
func (r *Reconciler) issued(ctx context.Context, cluster *registrationv1alpha1.Cluster) (*registrationv1alpha1.AgentValues, *registrationv1alpha1.ClusterRegistrationToken, *result, error) {
	token, secret := tokenFor(cluster), corev1.Secret{}
	found, err := reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(token), token, "reading ClusterRegistrationToken %q", token.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	if !found {
		if err := controllerutil.SetControllerReference(cluster, token, r.Client.Scheme()); err != nil {
			return nil, nil, nil, fmt.Errorf("preparing ClusterRegistrationToken %q: %w", token.Name, err)
		}
		if err := r.Client.Create(ctx, token); client.IgnoreAlreadyExists(err) != nil {
			return nil, nil, nil, fmt.Errorf("creating ClusterRegistrationToken %q: %w", token.Name, err)
		}
		return nil, nil, tokenPending(), nil
	}
	found, err = reconcileutil.GetIfExists(ctx, r.Live, client.ObjectKeyFromObject(token), &secret, "reading Secret %q", token.Name)
	if err != nil {
		return nil, nil, nil, err
	}
	if !found {
		return nil, nil, tokenPending(), nil
	}
	values, failure := readValues(cluster, token, &secret, r.HubURL, r.HubCA)
	return values, token, failure, nil
}

// reopen resets the use of the token: an agent that is installed again may have lost its key.
func (r *Reconciler) reopen(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) error {
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(token), token); err != nil {
		return fmt.Errorf("reading ClusterRegistrationToken %q: %w", token.Name, err)
	}
	return reconcileutil.Patch(ctx, r.Client, token, func() {
		delete(token.Annotations, registrationv1alpha1.AnnotationUsedBy)
	}, "giving ClusterRegistrationToken %q its use again", token.Name)
}

// TokenName is the name of the registration token for a Cluster's import.
func TokenName(cluster string) string { return "import-token-" + cluster }

func (r *Reconciler) desiredStatus(cluster *registrationv1alpha1.Cluster, o *result) registrationv1alpha1.ClusterStatus {
	status := *cluster.Status.DeepCopy()
	imported := registrationv1alpha1.GenericCondition{
		Type: registrationv1alpha1.ClusterConditionImported, Status: corev1.ConditionFalse, Reason: o.reason, Message: o.message,
	}
	if o.reason == ReasonImported {
		imported.Status = corev1.ConditionTrue
		generation := cluster.Spec.RedeployAgentGeneration
		status.AgentDeployedGeneration = &generation
		status.APIServerURL, status.APIServerCAHash = r.HubURL, hash.Of(r.HubCA)
		r.Agents.record(&status, cluster)
		status.AgentMigrated, status.AgentNamespaceMigrated, status.CattleNamespaceMigrated = true, true, true
		status.Agent.Namespace = agentNamespace(cluster)
	}
	status.Conditions = registrationv1alpha1.WithCondition(status.Conditions, imported, r.Clock.Now())
	return status
}
