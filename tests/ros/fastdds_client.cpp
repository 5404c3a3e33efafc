// A client or a server of a service as rmw_fastrtps makes it, on Fast DDS 2.x alone:
//   fastdds_client call SECONDS N [NAME [TYPE HEX]]   calls a service (/mini/trigger, a Trigger) N times and says what came
//   fastdds_client serve SECONDS N [NAME]             answers N calls
// TYPE: DDS name without its end, std_srvs::srv::dds_::Trigger; HEX: the request's CDR with its header. At the end: ANSWERED how-many OTHERS
// how-many-answers-to-others, LAST the last answer's CDR as hex.
// A request carries the GUID of the reader of its reply in its related sample identity; a reply is ours when it repeats that and the
// request's number.
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/common/WriteParams.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace fast = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;
using Bytes = std::vector<unsigned char>;
using Clock = std::chrono::steady_clock;

// a type of which only the name is known: its samples are their bytes
struct AnyType : fast::TopicDataType {
  explicit AnyType(const char* name) {
    setName(name);
    m_typeSize = 1 << 16;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    const Bytes& bytes = *static_cast<Bytes*>(data);
    std::memcpy(payload->data, bytes.data(), bytes.size());
    payload->length = bytes.size();
    payload->encapsulation = CDR_LE;
    return true;
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    static_cast<Bytes*>(data)->assign(payload->data, payload->data + payload->length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void* data) override {
    return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size()); };
  }
  void* createData() override { return new Bytes; }
  void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
  bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
};

template <class Qos>
Qos like_rmw() {
  Qos qos;
  qos.reliability().kind = fast::RELIABLE_RELIABILITY_QOS;
  qos.durability().kind = fast::VOLATILE_DURABILITY_QOS;
  qos.history().depth = 10;
  qos.endpoint().history_memory_policy = rtps::DYNAMIC_RESERVE_MEMORY_MODE;
  return qos;
}

struct Ends {
  fast::DataWriter* writer;
  fast::DataReader* reader;
};

Ends make(fast::DomainParticipant* participant, bool client, const std::string& name, const std::string& type) {
  fast::TypeSupport request(new AnyType((type + "_Request_").c_str())), response(new AnyType((type + "_Response_").c_str()));
  request.register_type(participant);
  response.register_type(participant);
  auto* to = participant->create_topic("rq" + name + "Request", request.get_type_name(), fast::TOPIC_QOS_DEFAULT);
  auto* from = participant->create_topic("rr" + name + "Reply", response.get_type_name(), fast::TOPIC_QOS_DEFAULT);
  auto* publisher = participant->create_publisher(fast::PUBLISHER_QOS_DEFAULT);
  auto* subscriber = participant->create_subscriber(fast::SUBSCRIBER_QOS_DEFAULT);
  return {publisher->create_datawriter(client ? to : from, like_rmw<fast::DataWriterQos>()),
          subscriber->create_datareader(client ? from : to, like_rmw<fast::DataReaderQos>())};
}

void call(const Ends& ends, int wanted, Clock::time_point end, const Bytes& request) {
  fast::PublicationMatchedStatus readers;
  fast::SubscriptionMatchedStatus writers;
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ends.writer->get_publication_matched_status(readers);
    ends.reader->get_subscription_matched_status(writers);
  } while ((readers.current_count < 1 || writers.current_count < 1) && Clock::now() < end);
  int answered = 0, others = 0;
  Bytes last;
  for (int k = 0; k < wanted && Clock::now() < end; ++k) {
    Bytes bytes = request;
    rtps::WriteParams params;
    params.related_sample_identity().writer_guid() = ends.reader->guid();
    ends.writer->write(&bytes, params);
    bool ours = false;
    while (!ours && Clock::now() < end) {
      ends.reader->wait_for_unread_message({1, 0});
      Bytes got;
      fast::SampleInfo info;
      while (ends.reader->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK) {
        if (!info.valid_data) continue;
        const auto& id = info.related_sample_identity;
        ours = id.writer_guid() == ends.reader->guid() && id.sequence_number() == params.sample_identity().sequence_number();
        others += !ours;
        if (ours) last = got;
        if (ours) break;
      }
    }
    answered += ours;
  }
  std::printf("ANSWERED %d OTHERS %d\nLAST ", answered, others);
  for (unsigned char byte : last) std::printf("%02x", byte);
  std::printf("\n");
}

void serve(const Ends& ends, int wanted, Clock::time_point end) {
  int served = 0;
  while (served < wanted && Clock::now() < end) {
    ends.reader->wait_for_unread_message({1, 0});
    Bytes got;
    fast::SampleInfo info;
    while (ends.reader->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      Bytes bytes{0, 1, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0, 'f', 'a', 's', 't', 0};
      rtps::WriteParams params;
      params.related_sample_identity().writer_guid() = info.related_sample_identity.writer_guid();
      params.related_sample_identity().sequence_number() = info.sample_identity.sequence_number();
      ends.writer->write(&bytes, params);
      ++served;
    }
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::printf("SERVED %d\n", served);
}

int main(int argc, char** argv) {
  const auto end = Clock::now() + std::chrono::seconds(std::atoi(argv[2]));
  const bool client = std::strcmp(argv[1], "call") == 0;
  auto* factory = fast::DomainParticipantFactory::get_instance();
  auto* participant = factory->create_participant(0, fast::PARTICIPANT_QOS_DEFAULT);
  const Ends ends = make(participant, client, argc > 4 ? argv[4] : "/mini/trigger", argc > 5 ? argv[5] : "std_srvs::srv::dds_::Trigger");
  Bytes request{0, 1, 0, 0, 0, 0, 0, 0};
  if (argc > 6) {
    request.clear();
    for (const char* hex = argv[6]; hex[0] && hex[1]; hex += 2) request.push_back(std::stoi(std::string(hex, 2), nullptr, 16));
  }
  if (client)
    call(ends, std::atoi(argv[3]), end, request);
  else
    serve(ends, std::atoi(argv[3]), end);
  std::fflush(stdout);
  participant->delete_contained_entities();
  factory->delete_participant(participant);
}
