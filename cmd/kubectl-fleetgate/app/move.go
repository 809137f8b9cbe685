// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/hub/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/hub/registration"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

type moveOptions struct {
	*session
	ToContext, ToKubeconfig         string
	MemberContext, MemberKubeconfig string
	AgentNamespace                  string
	Timeout                         time.Duration
	token                           tokenOptions
}

func newMoveCommand(s *session) *cobra.Command {
	o := &moveOptions{session: s, token: tokenOptions{session: s, Uses: 1}}
	command := &cobra.Command{
		Use:   "move MEMBER --to-context HUB --member-context CONTEXT",
		Short: "Move a member to another hub without changing its workloads",
		Long: `Move a member from its hub to another hub, under the same name. Nothing is deleted on the
member and no Pod restarts. Placements of the other hub adopt the resources that they
select; resources that no placement selects are retained and reported, so create the
placements on the other hub first. Labels and taints move with the member. To continue an
interrupted move, run the command again. To move back, run it from the other hub.`,
		Example: `  kubectl fleetgate move member-1 --to-context hub-b --member-context member-1
  kubectl fleetgate move member-1 --context hub-b --to-context hub-a --member-context member-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&o.ToContext, "to-context", "", "Context of the other hub.")
	flags.StringVar(&o.ToKubeconfig, "to-kubeconfig", "", "Kubeconfig file of that context. If unset, the kubeconfig of the hub is used.")
	flags.StringVar(&o.MemberContext, "member-context", "", "Context of the member cluster itself.")
	flags.StringVar(&o.MemberKubeconfig, "member-kubeconfig", "", "Kubeconfig file of that context. If unset, the kubeconfig of the hub is used.")
	flags.StringVar(&o.AgentNamespace, "agent-namespace", clusterv1beta1.SystemNamespace, "Namespace of the agent on the member.")
	flags.StringVar(&o.token.Registration, "registration-namespace", defaultRegistrationNamespace, "Namespace on the other hub where clusters register. Created if it does not exist.")
	flags.DurationVar(&o.token.TTL, "ttl", time.Hour, "Lifetime of the registration token on the other hub.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait until the member has left, and again until it has joined.")
	return command
}

func (o *moveOptions) run(ctx context.Context, name string) error {
	m, err := o.connect(name)
	if err != nil {
		return err
	}
	if err := m.readState(ctx); err != nil {
		return err
	}
	if err := m.refuse(ctx); err != nil {
		return err
	}
	if err := m.expect(ctx); err != nil {
		return err
	}
	if err := m.leave(ctx); err != nil {
		return err
	}
	if err := m.send(ctx); err != nil {
		return err
	}
	if err := m.arrive(ctx); err != nil {
		return err
	}
	o.printf("member %s has moved\n", name)
	return nil
}

// moving is a move in progress.
type moving struct {
	*moveOptions
	name     string
	from, to *overview.Hub
	// fromUID is the UID of the hub that the member leaves.
	fromUID      string
	memberConfig *rest.Config
	member       kubernetes.Interface
	// agent is the identity that the member's agent has stored.
	agent *enroll.StoredIdentity
	// was is the member on the hub that it leaves, with the Cluster under which it registered; nil
	// if it has left.
	was     *clusterv1beta1.MemberCluster
	cluster *registrationv1alpha1.Cluster
	// expected is its Cluster on the other hub, there its MemberCluster; nil until they exist.
	expected *registrationv1alpha1.Cluster
	there    *clusterv1beta1.MemberCluster
}

// connect prepares the clients. It makes no request.
func (o *moveOptions) connect(name string) (*moving, error) {
	if o.ToContext == "" && o.ToKubeconfig == "" {
		return nil, fmt.Errorf("set --to-context to the context of the other hub")
	}
	if o.MemberContext == "" && o.MemberKubeconfig == "" {
		return nil, fmt.Errorf("set --member-context to the context of the member cluster")
	}
	m := &moving{moveOptions: o, name: name}
	var err error
	if m.from, err = o.hub(); err != nil {
		return nil, err
	}
	if m.to, err = overview.Connect(o.otherFlags()); err != nil {
		return nil, err
	}
	if m.memberConfig, err = o.session.memberConfig(o.MemberContext, o.MemberKubeconfig); err != nil {
		return nil, err
	}
	if m.member, err = kubernetes.NewForConfig(m.memberConfig); err != nil {
		return nil, fmt.Errorf("connecting to the member at %s: %w", m.memberConfig.Host, err)
	}
	return m, nil
}

// otherFlags are the flags for the other hub. Server and credential flags apply to the first hub
// only; impersonation flags apply to both.
func (o *moveOptions) otherFlags() *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(o.IOStreams)
	own := o.flags
	flags.CacheDir, flags.KubeConfig, flags.Timeout = own.CacheDir, own.KubeConfig, own.Timeout
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup, flags.ImpersonateUserExtra = own.Impersonate, own.ImpersonateUID, own.ImpersonateGroup, own.ImpersonateUserExtra
	flags.Context = &o.ToContext
	if o.ToKubeconfig != "" {
		flags.KubeConfig = &o.ToKubeconfig
	}
	return flags
}

// readState reads the state on both hubs and on the member.
func (m *moving) readState(ctx context.Context) (err error) {
	if m.fromUID, err = m.from.UID(ctx); err != nil {
		return err
	}
	toUID, err := m.to.UID(ctx)
	if err != nil {
		return err
	}
	if toUID == m.fromUID {
		return fmt.Errorf("both contexts point to the same hub: set --context to the current hub and --to-context to the other hub")
	}
	if m.agent, err = enroll.ReadIdentity(ctx, m.member, m.AgentNamespace); err != nil {
		return fmt.Errorf("reading the agent's state on %s: %w", m.memberConfig.Host, err)
	}
	if m.expected, err = read(ctx, m.to, client.ObjectKey{Namespace: m.token.Registration, Name: m.name}, &registrationv1alpha1.Cluster{}); err != nil {
		return err
	}
	if m.there, err = read(ctx, m.to, client.ObjectKey{Name: m.name}, &clusterv1beta1.MemberCluster{}); err != nil {
		return err
	}
	if m.was, err = read(ctx, m.from, client.ObjectKey{Name: m.name}, &clusterv1beta1.MemberCluster{}); err != nil || m.was == nil {
		return err
	}
	m.cluster, err = read(ctx, m.from, client.ObjectKey{
		Namespace: m.was.Annotations[registrationv1alpha1.AnnotationClusterNamespace], Name: m.was.Annotations[registrationv1alpha1.AnnotationCluster],
	}, &registrationv1alpha1.Cluster{})
	return err
}

// read returns an object of a hub, or nil if it does not exist.
func read[T client.Object](ctx context.Context, h *overview.Hub, key client.ObjectKey, object T) (T, error) {
	var none T
	if key.Name == "" {
		return none, nil
	}
	err := h.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %q from the hub at %s: %w", key.Name, h.Config.Host, err)
	}
	return object, nil
}

// refuse returns why the member cannot be moved, before anything is changed.
func (m *moving) refuse(ctx context.Context) error {
	if m.was == nil && m.expected == nil {
		_, err := m.from.Member(ctx, m.name)
		return err
	}
	if m.agent.Member != m.name || m.was != nil && !m.hasKeyOf(m.was) {
		return fmt.Errorf("the cluster at %s is not member %q: its agent belongs to member %q or has another key; set --member-context to the context of the member",
			m.memberConfig.Host, m.name, m.agent.Member)
	}
	if m.there != nil && !m.hasKeyOf(m.there) {
		return fmt.Errorf("the other hub already has a different member %q: the name must be free there, so remove that member first", m.name)
	}
	if m.was == nil {
		return nil
	}
	if m.cluster == nil {
		return fmt.Errorf("member %q did not register with a Cluster object: its agent has a fixed identity for the hub, so change the flags of the agent", m.name)
	}
	if origin := m.cluster.Annotations[clusterapi.AnnotationOrigin]; origin != "" {
		return fmt.Errorf("the hub imports member %q from Cluster API Cluster %q and would import it again: label that Cluster %s=false, and remove annotation %s from Cluster %q of %s",
			m.name, origin, clusterapi.LabelAutoImport, clusterapi.AnnotationOrigin, m.cluster.Name, registrationv1alpha1.GroupName)
	}
	if m.expected != nil && m.expected.Spec.ClientID != m.cluster.Spec.ClientID {
		return fmt.Errorf("the other hub has a Cluster %q in namespace %q with a different client ID: delete it, or set its client ID to %q",
			m.name, m.token.Registration, m.cluster.Spec.ClientID)
	}
	removed, err := m.from.RemovedByLeaving(ctx, m.name)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		return fmt.Errorf("%d ManifestWorks of member %q, first %q, would delete their resources: set deleteOption.propagationPolicy of each to Orphan, or delete it first",
			len(removed), m.name, removed[0])
	}
	return nil
}

// hasKeyOf is true for a member whose agent key is that of the agent on the cluster.
func (m *moving) hasKeyOf(member *clusterv1beta1.MemberCluster) bool {
	_, key, _ := strings.Cut(member.Annotations[registration.AnnotationAgentKey], "/")
	return key == base64.StdEncoding.EncodeToString(m.agent.PublicKey)
}

// expect creates the member's Cluster on the other hub, and reports placements that are missing there.
func (m *moving) expect(ctx context.Context) error {
	if m.was == nil && m.there == nil {
		m.note("member %s has already left its hub; its taints there are no longer known\n", m.name)
	}
	if m.was == nil {
		return nil
	}
	if err := m.reportMissing(ctx); err != nil || m.expected != nil {
		return err
	}
	if err := m.token.ensureNamespace(ctx, m.to); err != nil {
		return err
	}
	m.expected = &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.token.Registration, Name: m.name, Labels: labelsToMove(m.was)},
		// The agent may have the client ID from a flag.
		Spec: registrationv1alpha1.ClusterSpec{ClientID: m.cluster.Spec.ClientID},
	}
	if err := m.to.Create(ctx, m.expected); err != nil {
		return fmt.Errorf("creating Cluster %q on the other hub: %w", m.name, err)
	}
	return nil
}

func (m *moving) reportMissing(ctx context.Context) error {
	placed, err := m.from.PlacementsOn(ctx, m.name)
	if err != nil {
		return err
	}
	others, err := m.to.PlacementNames(ctx)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(placed, func(name string) bool { return slices.Contains(others, name) })
	if len(missing) > 0 {
		m.note("the other hub has no placement %s: their resources are retained on the member until a placement selects them\n", strings.Join(missing, ", "))
	}
	return nil
}

// labelsToMove are the labels that users or the agent set on the member.
func labelsToMove(member *clusterv1beta1.MemberCluster) map[string]string {
	labels := map[string]string{}
	for key, value := range member.Labels {
		if !registrationv1alpha1.IsReservedLabel(key) {
			labels[key] = value
		}
	}
	return labels
}

// leave removes the member from the hub. It deletes the Cluster, too, which would prevent the
// member from joining this hub again.
func (m *moving) leave(ctx context.Context) error {
	if m.was == nil {
		return nil
	}
	if err := m.from.Delete(ctx, m.cluster, client.Preconditions{UID: &m.cluster.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the Cluster of member %q: %w", m.name, err)
	}
	err := m.await(ctx, m.Timeout, func(ctx context.Context) (bool, string, error) {
		cluster, err := read(ctx, m.from, client.ObjectKeyFromObject(m.cluster), &registrationv1alpha1.Cluster{})
		if err != nil {
			return false, "", err
		}
		member, err := read(ctx, m.from, client.ObjectKeyFromObject(m.was), &clusterv1beta1.MemberCluster{})
		switch {
		case err != nil:
			return false, "", err
		case member != nil && member.UID == m.was.UID:
			return false, whyNotLeft(member), nil
		}
		return cluster == nil || cluster.UID != m.cluster.UID, fmt.Sprintf("Cluster %q is being deleted", m.name), nil
	})
	if err != nil {
		return err
	}
	m.note("member %s has left its hub\n", m.name)
	return nil
}

// send gives the agent the values for registration with the other hub. The agent reads them once
// its previous hub no longer accepts it.
func (m *moving) send(ctx context.Context) error {
	if m.there != nil {
		return nil
	}
	m.token.For = m.name
	_, values, err := m.token.make(ctx, m.to, "")
	if err != nil {
		return err
	}
	bootstrap, err := enroll.ParseBootstrap(values)
	if err != nil {
		return fmt.Errorf("reading the values of the other hub's token: %w", err)
	}
	bootstrap.ClientID, bootstrap.ProxyURL = m.expected.Spec.ClientID, m.agent.ProxyURL
	if err := enroll.LeaveValues(ctx, m.member, m.AgentNamespace, bootstrap); err != nil {
		return err
	}
	m.note("the agent of %s has the registration values of the other hub\n", m.name)
	return nil
}

// arrive waits until the member has joined the other hub. The token leaves the member unapproved,
// so that nothing is placed on it before that hub knows the member's previous hub.
func (m *moving) arrive(ctx context.Context) error {
	joining := &joinOptions{session: m.session, token: m.token}
	pods := &agentPods{config: m.memberConfig}
	return m.await(ctx, m.Timeout, func(ctx context.Context) (bool, string, error) {
		member, err := read(ctx, m.to, client.ObjectKey{Name: m.name}, &clusterv1beta1.MemberCluster{})
		if err == nil && member != nil {
			err = m.to.ChangeMember(ctx, m.name, m.takeOver)
		}
		if err != nil {
			return false, "", err
		}
		return joining.joined(ctx, m.to, pods, m.name)
	})
}

// takeOver approves the member on the other hub, and transfers its taints and the previous hub's UID.
func (m *moving) takeOver(member *clusterv1beta1.MemberCluster) {
	if member.Annotations[clusterv1beta1.AnnotationFormerHub] == m.fromUID {
		return
	}
	metav1.SetMetaDataAnnotation(&member.ObjectMeta, clusterv1beta1.AnnotationFormerHub, m.fromUID)
	member.Spec.Taints = withoutTaint(member.Spec.Taints, clusterv1beta1.TaintUnapproved, "")
	if m.was == nil {
		return
	}
	for _, taint := range withoutTaint(m.was.Spec.Taints, clusterv1beta1.TaintUnreachable, "") {
		member.Spec.Taints = withTaint(member.Spec.Taints, taint)
	}
}
