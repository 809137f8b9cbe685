// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

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
	"fleetgate.io/fleetgate/pkg/cluster/clusterapi"
	"fleetgate.io/fleetgate/pkg/cluster/enroll"
	"fleetgate.io/fleetgate/pkg/cluster/registration"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
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
		Short: "Have a member belong to another hub, with what runs on it as it is",
		Long: `Move takes a member out of its hub's fleet and into that of the hub to which another
context leads, under the same name. Nothing is removed from the member, and no Pod is
started again: what the other hub's placements want of what is there becomes theirs,
what none wants stays and is told. So have the other hub place it before. Labels and
taints of the member go along. A move that was interrupted goes on when it is asked for
again; back again is the same, from the other hub.`,
		Example: `  kubectl fleetgate move member-1 --to-context hub-b --member-context member-1
  kubectl fleetgate move member-1 --context hub-b --to-context hub-a --member-context member-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeNames(false, memberNames),
		RunE:              func(command *cobra.Command, args []string) error { return o.run(command.Context(), args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&o.ToContext, "to-context", "", "The context that leads to the other hub.")
	flags.StringVar(&o.ToKubeconfig, "to-kubeconfig", "", "The file that has it. Empty: that of the hub's context.")
	flags.StringVar(&o.MemberContext, "member-context", "", "The context that leads to the member itself.")
	flags.StringVar(&o.MemberKubeconfig, "member-kubeconfig", "", "The file that has it. Empty: that of the hub's context.")
	flags.StringVar(&o.AgentNamespace, "agent-namespace", clusterv1beta1.SystemNamespace, "Namespace of the agent on the member.")
	flags.StringVar(&o.token.Registration, "in", defaultRegistrationNamespace, "Namespace on the other hub where clusters register. It is made if it is not there.")
	flags.DurationVar(&o.token.TTL, "ttl", time.Hour, "How long the token of the other hub is good for.")
	flags.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "How long to wait until it has left, and again until it has joined.")
	return command
}

func (o *moveOptions) run(ctx context.Context, name string) error {
	m, err := o.connect(name)
	if err != nil {
		return err
	}
	if err := m.look(ctx); err != nil {
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
	o.say("member %s has moved\n", name)
	return nil
}

// moving is a move under way.
type moving struct {
	*moveOptions
	name     string
	from, to *hub.Hub
	// fromUID is that of the hub which the member leaves.
	fromUID      string
	memberConfig *rest.Config
	member       kubernetes.Interface
	// agent is what the member's agent keeps of who it is.
	agent *enroll.Standing
	// was is the member on the hub that it leaves, with the Cluster by which it registered; nil
	// if it has left.
	was     *clusterv1beta1.MemberCluster
	cluster *registrationv1alpha1.Cluster
	// expected is its Cluster on the other hub, and there its member there; nil until they are made.
	expected *registrationv1alpha1.Cluster
	there    *clusterv1beta1.MemberCluster
}

// connect asks neither hubs nor member anything.
func (o *moveOptions) connect(name string) (*moving, error) {
	if o.ToContext == "" && o.ToKubeconfig == "" {
		return nil, fmt.Errorf("say with --to-context which context leads to the other hub")
	}
	if o.MemberContext == "" && o.MemberKubeconfig == "" {
		return nil, fmt.Errorf("say with --member-context which context leads to the member itself")
	}
	m := &moving{moveOptions: o, name: name}
	var err error
	if m.from, err = o.hub(); err != nil {
		return nil, err
	}
	if m.to, err = hub.Connect(o.otherFlags()); err != nil {
		return nil, err
	}
	if m.memberConfig, err = o.session.memberConfig(o.MemberContext, o.MemberKubeconfig); err != nil {
		return nil, err
	}
	if m.member, err = kubernetes.NewForConfig(m.memberConfig); err != nil {
		return nil, fmt.Errorf("reaching the member at %s: %w", m.memberConfig.Host, err)
	}
	return m, nil
}

// otherFlags lead to the other hub. What the user has said of the first one's server and of their
// credential there is not for this one, but whom they want to be is.
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

// look reads what is on both hubs and on the member.
func (m *moving) look(ctx context.Context) (err error) {
	if m.fromUID, err = m.from.UID(ctx); err != nil {
		return err
	}
	toUID, err := m.to.UID(ctx)
	if err != nil {
		return err
	}
	if toUID == m.fromUID {
		return fmt.Errorf("both contexts lead to the same hub: say with --context from which hub, and with --to-context to which")
	}
	if m.agent, err = enroll.StandingOf(ctx, m.member, m.AgentNamespace); err != nil {
		return fmt.Errorf("looking at the agent on %s: %w", m.memberConfig.Host, err)
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

// read returns an object of a hub, nil if it is not there.
func read[T client.Object](ctx context.Context, h *hub.Hub, key client.ObjectKey, object T) (T, error) {
	var none T
	if key.Name == "" {
		return none, nil
	}
	err := h.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		return none, nil
	}
	if err != nil {
		return none, fmt.Errorf("reading %q of the hub at %s: %w", key.Name, h.Config.Host, err)
	}
	return object, nil
}

// refuse says why the member cannot be moved, before anything is changed.
func (m *moving) refuse(ctx context.Context) error {
	if m.was == nil && m.expected == nil {
		_, err := m.from.Member(ctx, m.name)
		return err
	}
	if m.agent.Member != m.name || m.was != nil && !m.hasKeyOf(m.was) {
		return fmt.Errorf("the cluster at %s is not member %q, but has the agent of a member %q with another key: say with --member-context which context leads to it",
			m.memberConfig.Host, m.name, m.agent.Member)
	}
	if m.there != nil && !m.hasKeyOf(m.there) {
		return fmt.Errorf("the other hub has another member %q: a member has the same name on both, so have that one leave before", m.name)
	}
	if m.was == nil {
		return nil
	}
	if m.cluster == nil {
		return fmt.Errorf("member %q has no Cluster by which it registered: its identity on the hub is given to its agent, whose flags have to be changed", m.name)
	}
	if origin := m.cluster.Annotations[clusterapi.AnnotationOrigin]; origin != "" {
		return fmt.Errorf("the hub imports member %q for Cluster %q of Cluster API, and would do so again: label that %s=false, and take the annotation %s off Cluster %q of %s",
			m.name, origin, clusterapi.LabelAutoImport, clusterapi.AnnotationOrigin, m.cluster.Name, registrationv1alpha1.GroupName)
	}
	if m.expected != nil && m.expected.Spec.ClientID != m.cluster.Spec.ClientID {
		return fmt.Errorf("the other hub has a Cluster %q in namespace %q with another client ID: delete it, or give it client ID %q",
			m.name, m.token.Registration, m.cluster.Spec.ClientID)
	}
	removed, err := m.from.RemovedByLeaving(ctx, m.name)
	if err != nil {
		return err
	}
	if len(removed) > 0 {
		return fmt.Errorf("%d ManifestWorks of member %q, first %q, would take with them what they have brought: give each deleteOption.propagationPolicy Orphan before, or delete it",
			len(removed), m.name, removed[0])
	}
	return nil
}

// hasKeyOf is true of a member whose agent is the one on the cluster.
func (m *moving) hasKeyOf(member *clusterv1beta1.MemberCluster) bool {
	_, key, _ := strings.Cut(member.Annotations[registration.AnnotationAgentKey], "/")
	return key == base64.StdEncoding.EncodeToString(m.agent.PublicKey)
}

// expect makes the member's Cluster on the other hub, and says what that hub does not place.
func (m *moving) expect(ctx context.Context) error {
	if m.was == nil && m.there == nil {
		m.note("member %s has left its hub before: which taints it had there is not known any more\n", m.name)
	}
	if m.was == nil {
		return nil
	}
	if err := m.sayUnplaced(ctx); err != nil || m.expected != nil {
		return err
	}
	if err := m.token.ensureNamespace(ctx, m.to); err != nil {
		return err
	}
	m.expected = &registrationv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.token.Registration, Name: m.name, Labels: labelsToTake(m.was)},
		// The agent may have it by a flag.
		Spec: registrationv1alpha1.ClusterSpec{ClientID: m.cluster.Spec.ClientID},
	}
	if err := m.to.Create(ctx, m.expected); err != nil {
		return fmt.Errorf("making Cluster %q on the other hub: %w", m.name, err)
	}
	return nil
}

func (m *moving) sayUnplaced(ctx context.Context) error {
	placed, err := m.from.PlacementsOn(ctx, m.name)
	if err != nil {
		return err
	}
	others, err := m.to.PlacementNames(ctx)
	if err != nil {
		return err
	}
	unplaced := slices.DeleteFunc(placed, func(name string) bool { return slices.Contains(others, name) })
	if len(unplaced) > 0 {
		m.note("the other hub has no placement %s: what is there of it stays, and is held until one of its placements wants it\n", strings.Join(unplaced, ", "))
	}
	return nil
}

// labelsToTake are those that people, or the agent, gave the member.
func labelsToTake(member *clusterv1beta1.MemberCluster) map[string]string {
	labels := map[string]string{}
	for key, value := range member.Labels {
		if !registrationv1alpha1.IsReservedLabel(key) {
			labels[key] = value
		}
	}
	return labels
}

// leave has the member leave the hub. Its Cluster goes, too: it would keep the member from coming
// back one day.
func (m *moving) leave(ctx context.Context) error {
	if m.was == nil {
		return nil
	}
	if err := m.from.Delete(ctx, m.cluster, client.Preconditions{UID: &m.cluster.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("having member %q leave: %w", m.name, err)
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

// send gives the agent what it registers with on the other hub. It looks for that once its former
// hub does not accept it any more.
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
	m.note("the agent of %s has what it registers with on the other hub\n", m.name)
	return nil
}

// arrive waits until the member has joined the other hub. Nothing is placed there before that
// knows whose place it has: the token leaves its member unapproved.
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

// takeOver has the member be the other hub's, with what its former one placed and said of it.
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
