// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// FlowControllerName is the name of FlowReconciler.
const FlowControllerName = "membercluster.flows"

// Names of the FlowSchemas for agents.
const (
	// FlowSchemaAgents assigns requests of agents to their own priority level.
	FlowSchemaAgents = "fleetgate-agents"
	// FlowSchemaLeases assigns agents' heartbeats to Kubernetes' level for those of nodes.
	FlowSchemaLeases = "fleetgate-agents-leases"
)

const (
	// leaseLevel is Kubernetes' own level for the heartbeats of nodes, which are similar. In its level
	// for leader elections, thousands of heartbeats could make controllers lose their Leases.
	leaseLevel = "node-high"
	// The API server evaluates FlowSchemas in this order: heartbeats before all other requests of
	// agents, and both before its own schema for all service accounts (9000).
	leasePrecedence, agentPrecedence = 210, 800
	// gatherMembers is how long changes of members are gathered for one write.
	gatherMembers = time.Second
	// flowsAgain is the interval at which the FlowSchemas are checked for changes.
	flowsAgain = 10 * time.Minute
)

// FlowReconciler assigns agents' requests to a priority level of their own. A FlowSchema cannot match
// accounts by pattern, so it lists each agent.
type FlowReconciler struct {
	// Client writes, and reads MemberClusters, from a cache if it has one.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Level is the PriorityLevelConfiguration of agents. It owns the FlowSchemas, which are deleted
	// with it.
	Level string
}

var _ reconcile.Reconciler = (*FlowReconciler)(nil)

// SetupWithManager watches the identities of members.
func (r *FlowReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(FlowControllerName).
		Watches(&clusterv1beta1.MemberCluster{}, gathered(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

func gathered() handler.EventHandler {
	add := func(q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: FlowSchemaAgents}}, gatherMembers)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
		UpdateFunc: func(_ context.Context, _ event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
		DeleteFunc: func(_ context.Context, _ event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			add(q)
		},
	}
}

// Reconcile keeps the FlowSchemas of the agents up to date.
func (r *FlowReconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	var members clusterv1beta1.MemberClusterList
	if err := r.Client.List(ctx, &members, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing members: %w", err)
	}
	var level flowcontrolv1.PriorityLevelConfiguration
	err := r.Live.Get(ctx, client.ObjectKey{Name: r.Level}, &level)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: flowsAgain}, nil // Without it the API server would ignore the FlowSchemas.
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading PriorityLevelConfiguration %q: %w", r.Level, err)
	}
	for _, wanted := range desiredFlows(members.Items, &level) {
		err := r.ensure(ctx, wanted)
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
			return ctrl.Result{RequeueAfter: gatherMembers}, nil
		}
		if err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: flowsAgain}, nil
}

func (r *FlowReconciler) ensure(ctx context.Context, wanted *flowcontrolv1.FlowSchema) error {
	var live flowcontrolv1.FlowSchema
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(wanted), &live)
	if apierrors.IsNotFound(err) {
		err = r.Client.Create(ctx, wanted)
	} else if err == nil && !(equality.Semantic.DeepEqual(live.Spec, wanted.Spec) && equality.Semantic.DeepEqual(live.OwnerReferences, wanted.OwnerReferences)) {
		live.Spec, live.OwnerReferences = wanted.Spec, wanted.OwnerReferences
		err = r.Client.Update(ctx, &live)
	}
	if err != nil {
		return fmt.Errorf("keeping FlowSchema %q: %w", wanted.Name, err)
	}
	return nil
}

func desiredFlows(members []clusterv1beta1.MemberCluster, level *flowcontrolv1.PriorityLevelConfiguration) []*flowcontrolv1.FlowSchema {
	subjects := agentSubjects(members)
	all := []string{"*"}
	return []*flowcontrolv1.FlowSchema{
		flowSchema(FlowSchemaLeases, leaseLevel, leasePrecedence, level, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects: subjects,
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
				APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all, Namespaces: all,
			}},
		}),
		flowSchema(FlowSchemaAgents, level.Name, agentPrecedence, level, flowcontrolv1.PolicyRulesWithSubjects{
			Subjects:         subjects,
			ResourceRules:    []flowcontrolv1.ResourcePolicyRule{{APIGroups: all, Resources: all, Verbs: all, Namespaces: all, ClusterScope: true}},
			NonResourceRules: []flowcontrolv1.NonResourcePolicyRule{{NonResourceURLs: all, Verbs: all}},
		}),
	}
}

func flowSchema(name, leadsTo string, precedence int32, owner *flowcontrolv1.PriorityLevelConfiguration, rule flowcontrolv1.PolicyRulesWithSubjects) *flowcontrolv1.FlowSchema {
	schema := &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: flowcontrolv1.SchemeGroupVersion.String(), Kind: "PriorityLevelConfiguration", Name: owner.Name, UID: owner.UID,
		}}},
		Spec: flowcontrolv1.FlowSchemaSpec{
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: leadsTo},
			MatchingPrecedence:         precedence,
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
		},
	}
	if len(rule.Subjects) > 0 { // A rule without subjects is invalid; a FlowSchema without rules matches nothing.
		schema.Spec.Rules = []flowcontrolv1.PolicyRulesWithSubjects{rule}
	}
	return schema
}

// agentSubjects are the identities of all members, in a stable order.
func agentSubjects(members []clusterv1beta1.MemberCluster) []flowcontrolv1.Subject {
	identities := make([]rbacv1.Subject, 0, len(members))
	for i := range members {
		if identity := members[i].Spec.Identity; refuseIdentity(identity) == nil {
			identities = append(identities, rbacv1.Subject{Kind: identity.Kind, Namespace: identity.Namespace, Name: identity.Name})
		}
	}
	slices.SortFunc(identities, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	var subjects []flowcontrolv1.Subject
	for _, identity := range slices.Compact(identities) {
		subject := flowcontrolv1.Subject{Kind: flowcontrolv1.SubjectKind(identity.Kind)}
		switch identity.Kind {
		case rbacv1.ServiceAccountKind:
			subject.ServiceAccount = &flowcontrolv1.ServiceAccountSubject{Namespace: identity.Namespace, Name: identity.Name}
		case rbacv1.GroupKind:
			subject.Group = &flowcontrolv1.GroupSubject{Name: identity.Name}
		default:
			subject.User = &flowcontrolv1.UserSubject{Name: identity.Name}
		}
		subjects = append(subjects, subject)
	}
	return subjects
}
